# Writes a header with one number for all sources of the core: acep.checkout takes the same of a checkout, and knows by it
# whether an installed core was built from the sources that stand there. cmake -DSOURCES=... -DHEADER=... -P digest.cmake

file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE "${SOURCES}"
    "${SOURCES}/*.cpp" "${SOURCES}/*.hpp" "${SOURCES}/*.cmake" "${SOURCES}/CMakeLists.txt")
list(SORT files)
set(lines "")
foreach(file IN LISTS files)
    file(SHA256 "${SOURCES}/${file}" digest)
    string(APPEND lines "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${lines}")
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define ACEP_SOURCES \"@digest@\"\n" @ONLY)
