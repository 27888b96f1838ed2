// Predicates on two values that need no program: `a < b + 8`, `abs(a - b) <= 3` and the like.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace acep {

// A comparison of two inputs with at most one sum, product or distance in it, which is decided without its program.
struct SimplePredicate {
    // a ? b, a + c ? b, a ? b + c, a * c ? b, a ? b * c, |a - b| ? c
    enum Shape : uint8_t { plain, sum_left, sum_right, product_left, product_right, distance };
    // How the two sides are compared.
    enum Comparison : uint8_t { equal, different, less, at_most };
    Shape shape = plain;
    Comparison comparison = equal;
    bool doubles = false;
    uint32_t a = 0, b = 0;  // numbers of inputs
    int64_t constant = 0;  // c, as a word
    bool mixed = false;  // c is a double, and a and b are integers

    // Return whether it holds for two values that are not null, as its program says.
    bool holds(int64_t x, int64_t y) const {
        return doubles ? of_doubles(std::bit_cast<double>(x), std::bit_cast<double>(y)) : of_integers(x, y);
    }

private:
    // Return whether the comparison holds for the two sides.
    template <class Number>
    bool compared(Number x, Number y) const {
        switch (comparison) {
            case equal: return x == y;
            case different: return x != y;
            case less: return x < y;
            default: return x <= y;
        }
    }
    // Return whether it holds for two doubles.
    bool of_doubles(double x, double y) const {
        const double c = std::bit_cast<double>(constant);
        switch (shape) {
            case plain: return compared(x, y);
            case sum_left: x += c; break;
            case sum_right: y += c; break;
            case product_left: x *= c; break;
            case product_right: y *= c; break;
            case distance: x = std::fabs(x - y), y = c; break;
        }
        return x == x && y == y && compared(x, y);  // a sum that is no number is null
    }
    // Return whether it holds for two integers; not if the sum, product or distance is beyond 64 bits.
    bool of_integers(int64_t x, int64_t y) const {
        bool over = false;
        switch (shape) {
            case plain: return compared(x, y);
            case sum_left: over = __builtin_add_overflow(x, constant, &x); break;
            case sum_right: over = __builtin_add_overflow(y, constant, &y); break;
            case product_left: over = __builtin_mul_overflow(x, constant, &x); break;
            case product_right: over = __builtin_mul_overflow(y, constant, &y); break;
            case distance: {
                over = __builtin_sub_overflow(x, y, &x) || __builtin_sub_overflow(int64_t{0}, x, &y);
                x = x < 0 ? y : x;
                y = constant;
                break;
            }
        }
        return !over && compared(x, y);
    }
};

}  // namespace acep
