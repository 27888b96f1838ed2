// The operations of block programs. acep/plan/lower/bytecode_words.py has the same list; a test compares them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace acep {

// Each has a name, operands (w: a vector of 64-bit words, t: of truth values) and a result. The words of an instruction
// are its number, the slot of the result, the slots of the operands, and then
//   LEAF   the number of an input          CONST  a word
//   IN_*   a count, and that many words    PART   the part, numerator and denominator of a tick in microseconds
//   ORDER_*, QUOTIENT, FLOOR_I, CEIL_I     a number of decimal places
// A program ends with RETURN and the slot of its result. Suffixes: _I integers (or codes), _F doubles, _M an integer
// and a double, _S texts.
// clang-format off
#define ACEP_OPS(X)                                                                                                  \
    X(RETURN, "", ' ')                                                                                               \
    X(LEAF, "", 'w') X(CONST, "", 'w') X(NONE, "", 'w')                                                              \
    X(TRUTH, "w", 't') X(NUMBER, "t", 'w') X(IS_NULL, "w", 't') X(UNKNOWN, "t", 't')                                 \
    X(NOT, "t", 't') X(AND, "tt", 't') X(OR, "tt", 't')                                                              \
    X(EQ_I, "ww", 't') X(NE_I, "ww", 't') X(LT_I, "ww", 't') X(LE_I, "ww", 't')                                      \
    X(EQ_F, "ww", 't') X(NE_F, "ww", 't') X(LT_F, "ww", 't') X(LE_F, "ww", 't')                                      \
    X(EQ_M, "ww", 't') X(NE_M, "ww", 't') X(LT_M, "ww", 't') X(LE_M, "ww", 't') X(GT_M, "ww", 't') X(GE_M, "ww", 't') \
    X(LT_S, "ww", 't') X(LE_S, "ww", 't')                                                                            \
    X(IN_I, "w", 't') X(IN_F, "w", 't')                                                                              \
    X(ADD_I, "ww", 'w') X(SUB_I, "ww", 'w') X(MUL_I, "ww", 'w') X(DIV_I, "ww", 'w') X(MOD_I, "ww", 'w')              \
    X(NEG_I, "w", 'w') X(ABS_I, "w", 'w') X(SIGN_I, "w", 'w') X(ROUND_I, "ww", 'w') X(FLOAT, "w", 'w')               \
    X(ADD_F, "ww", 'w') X(SUB_F, "ww", 'w') X(MUL_F, "ww", 'w') X(DIV_F, "ww", 'w') X(MOD_F, "ww", 'w')              \
    X(NEG_F, "w", 'w') X(ABS_F, "w", 'w') X(SIGN_F, "w", 'w') X(ROUND_F, "ww", 'w')                                  \
    X(FLOOR, "w", 'w') X(CEIL, "w", 'w') X(SQRT, "w", 'w') X(EXP, "w", 'w') X(LN, "w", 'w') X(LOG10, "w", 'w')       \
    X(POWER, "ww", 'w') X(PART, "w", 'w')                                                                            \
    X(MIN_I, "ww", 'w') X(MAX_I, "ww", 'w') X(MIN_F, "ww", 'w') X(MAX_F, "ww", 'w')                                  \
    X(MIN_S, "ww", 'w') X(MAX_S, "ww", 'w') X(COALESCE, "ww", 'w') X(SELECT, "tww", 'w')                             \
    X(ORDER_I, "ww", 'w') X(ORDER_M, "ww", 'w') X(QUOTIENT, "ww", 'w') X(FLOOR_I, "w", 'w') X(CEIL_I, "w", 'w')
// clang-format on

// The operations, by their numbers in byte code.
enum class Op : uint8_t {
#define ACEP_OP(name, reads, gives) name,
    ACEP_OPS(ACEP_OP)
#undef ACEP_OP
};

// The operands of an operation, a letter for each, and its result: see above.
struct OpForm {
    std::string_view name;
    std::string_view reads;
    char gives;
};

inline constexpr auto op_forms = std::to_array<OpForm>({
#define ACEP_OP(name, reads, gives) {#name, reads, gives},
    ACEP_OPS(ACEP_OP)
#undef ACEP_OP
});

}  // namespace acep
