# Writes a header with one number for all sources of the core: acep.checkout takes the same of a checkout, and knows by it
# whether an installed core was built from the sources that stand there. cmake -DSOURCES=... -DHEADER=... -P digest.cmake

file(GLOB files LIST_DIRECTORIES false "${SOURCES}/*.cpp" "${SOURCES}/*.hpp" "${SOURCES}/*.cmake" "${SOURCES}/CMakeLists.txt")
list(SORT files)
set(lines "")
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME)
    file(SHA256 "${file}" digest)
    string(APPEND lines "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${lines}")
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define ACEP_SOURCES \"@digest@\"\n" @ONLY)
