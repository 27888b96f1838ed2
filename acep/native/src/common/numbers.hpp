// Arithmetic with the results of Python: exact comparisons of integers with doubles, correctly rounded quotients,
// decimal rounding, and the parts of a point in time.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace acep {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

constexpr int64_t int64_min = std::numeric_limits<int64_t>::min();
constexpr int64_t int64_max = std::numeric_limits<int64_t>::max();
constexpr double two_63 = 9223372036854775808.0;

// Return the absolute value, also of the least integer.
inline uint64_t magnitude(int64_t x) { return x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x); }

// Return the integer of 128 bits that two words make up.
inline uint128 wide(int64_t high, int64_t low) {
    return static_cast<uint128>(static_cast<uint64_t>(high)) << 64 | static_cast<uint64_t>(low);
}

// Return -1, 0 or 1 if `i` is below, equal to or above `d`, exactly; 2 if `d` is NaN.
inline int compare_exactly(int64_t i, double d) {
    const double near = static_cast<double>(i);  // rounding is monotonic: values that differ after it differed before
    if (near < d) return -1;
    if (near > d) return 1;
    if (near != d) return 2;
    if (d >= two_63) return -1;
    const int64_t whole = static_cast<int64_t>(d);
    return i < whole ? -1 : i > whole ? 1 : 0;
}

// Return n / d rounded half to even; d is not 0, and below 2^127.
inline double divide(uint128 n, uint128 d, bool negative) {
    uint128 quotient = n / d, rest = n - quotient * d;
    int shift = 0;
    // A double keeps 53 bits. So the lowest bit of a quotient of more than 55 bits can stand for all bits after it.
    while (rest != 0 && quotient >> 56 == 0) {
        const auto high = static_cast<uint64_t>(rest >> 64);
        const int step = high != 0 ? std::countl_zero(high) : 64;
        const uint128 more = (rest << step) / d;
        rest = (rest << step) - more * d;
        quotient = quotient << step | more;
        shift += step;
    }
    const double result = std::ldexp(static_cast<double>(quotient | (rest != 0 ? 1U : 0U)), -shift);
    return negative ? -result : result;
}

// Return numerator / denominator rounded half to even, as Python divides integers; `denominator` is not 0.
inline double divide(int128 numerator, int64_t denominator) {
    const uint128 n = numerator < 0 ? -static_cast<uint128>(numerator) : static_cast<uint128>(numerator);
    return divide(n, magnitude(denominator), (numerator < 0) != (denominator < 0));
}

// Return numerator / denominator rounded half to even, as above, fast for small numbers.
inline double divide(int64_t numerator, int64_t denominator) {
    constexpr uint64_t exact = uint64_t{1} << 53;
    if (magnitude(numerator) <= exact && magnitude(denominator) <= exact) {
        return static_cast<double>(numerator) / static_cast<double>(denominator);
    }
    return divide(static_cast<int128>(numerator), denominator);
}

// Decimals are integers that count units of a power of ten.
constexpr int64_t most_places = 18;

inline int64_t power_of_ten(int64_t places) {  // 0 <= places <= most_places
    int64_t unit = 1;
    for (int64_t i = 0; i < places; ++i) unit *= 10;
    return unit;
}

// Return -1, 0 or 1 if x * 10^places is below, equal to or above y.
inline int64_t compare_scaled(int64_t x, int64_t y, int64_t places) {
    int128 left = x, right = y;
    (places < 0 ? right : left) *= power_of_ten(places < 0 ? -places : places);
    return left < right ? -1 : left > right ? 1 : 0;
}

// Return -1, 0 or 1 if x / 10^places is below, equal to or above y, exactly; y is not NaN.
inline int64_t compare_decimal(int64_t x, double y, int64_t places) {
    if (!(std::fabs(y) < 2 * two_63)) return y > 0 ? -1 : 1;
    int exponent = 0;
    const auto digits = static_cast<int64_t>(std::ldexp(std::frexp(y, &exponent), 53));  // y = digits * 2^(exponent-53)
    int128 whole = static_cast<int128>(digits) * power_of_ten(places);  // below 2^113
    bool rest = false;
    exponent -= 53;
    if (exponent > 0) {
        whole *= int128{1} << exponent;  // at most 2^11
    } else if (exponent < 0) {
        const int shift = std::min(-exponent, 126);
        rest = (whole & ((int128{1} << shift) - 1)) != 0;
        whole >>= shift;  // rounds down
    }
    return x < whole || (x == whole && rest) ? -1 : x > whole ? 1 : 0;
}

// Return x * 10^places / y, rounded once; y is not 0.
inline double quotient(int64_t x, int64_t y, int64_t places) {
    uint128 n = magnitude(x), d = magnitude(y);
    (places < 0 ? d : n) *= static_cast<uint64_t>(power_of_ten(places < 0 ? -places : places));  // below 2^124
    return divide(n, d, (x < 0) != (y < 0));
}

// Return total / (count * 10^places), rounded once; count is above 0.
inline double average(int128 total, int64_t count, int64_t places) {
    const uint128 n = total < 0 ? -static_cast<uint128>(total) : static_cast<uint128>(total);
    return divide(n, static_cast<uint128>(count) * static_cast<uint64_t>(power_of_ten(places)), total < 0);
}

inline int64_t floor_divide(int64_t a, int64_t b) {  // b > 0
    const int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

// Convert a whole double to an integer; return false if it does not fit in 64 bits (or is NaN).
inline bool to_integer(double whole, int64_t& out) {
    if (!(whole >= -two_63 && whole < two_63)) return false;
    out = static_cast<int64_t>(whole);
    return true;
}

// Compute round(x, digits), half away from zero; return false beyond 64 bits. Below -300 digits `x` is unchanged.
inline bool round_integer(int64_t x, int64_t digits, int64_t& out) {
    out = x;
    if (digits >= 0 || digits < -300) return true;
    if (digits < -19) {
        out = 0;
        return true;
    }
    uint64_t unit = 1;
    for (int64_t i = digits; i < 0; ++i) unit *= 10;
    const uint64_t size = magnitude(x);
    const uint64_t rest = size % unit;
    const int128 rounded = static_cast<int128>(size / unit + (rest >= unit - rest ? 1 : 0)) * unit;
    const int128 result = x < 0 ? -rounded : rounded;
    if (result < int64_min || result > int64_max) return false;
    out = static_cast<int64_t>(result);
    return true;
}

// Round the shortest decimal that reads as `x` to `digits`, half away from zero. Return false for NaN, and if more than
// 28 digits would be kept, which is the precision of Python's decimal numbers.
inline bool round_double(double x, int64_t digits, double& out) {
    out = x;
    if (std::isnan(x)) return false;
    if (std::isinf(x) || digits < -300 || digits > 300 || x == 0) return true;
    char written[40];  // d.ddde-ddd
    const auto end = std::to_chars(written, written + sizeof written, std::fabs(x), std::chars_format::scientific).ptr;
    char kept[48];
    int count = 0, exponent = 0;
    const char* at = written;
    for (; at != end && *at != 'e'; ++at) {
        if (*at != '.') kept[++count] = *at;
    }
    kept[0] = '0';  // room for a carry
    ++at;
    std::from_chars(*at == '+' ? at + 1 : at, end, exponent);
    const int keep = exponent + 1 + static_cast<int>(digits);  // number of digits before the place of rounding
    if (keep > 28) return false;
    if (keep >= count) return true;
    if (keep < 0) {
        out = std::copysign(0.0, x);
        return true;
    }
    int last = keep;
    if (kept[keep + 1] >= '5') {
        while (kept[last] == '9') kept[last--] = '0';
        ++kept[last];
    }
    kept[keep + 1] = 'e';
    const auto stop = std::to_chars(kept + keep + 2, kept + sizeof kept, -digits).ptr;
    double result = 0;
    if (std::from_chars(kept, stop, result).ec == std::errc::result_out_of_range) {
        result = std::numeric_limits<double>::infinity();
    }
    out = std::copysign(result, x);
    return true;
}

// The parts of a time that a query can ask for.
enum class TimePart : uint8_t { hour, minute, second, day, month, year, dayofweek };

// Compute a part of the time `ticks` after 1970, where a tick is per / over microseconds (both positive, below 2^62).
// Return false outside the years 1 to 9999.
inline bool time_part(int64_t ticks, TimePart part, int64_t per, int64_t over, int64_t& out) {
    constexpr int64_t day_us = 86'400'000'000, first_day = -719'162, last_day = 2'932'896;
    int64_t us = ticks;
    if (per == 1) {
        if (over != 1) us = floor_divide(ticks, over);
    } else {
        const int128 product = static_cast<int128>(ticks) * per;
        const int128 whole = product / over - (product % over < 0 ? 1 : 0);
        if (whole < first_day * static_cast<int128>(day_us) || whole >= (last_day + 1) * static_cast<int128>(day_us)) {
            return false;
        }
        us = static_cast<int64_t>(whole);
    }
    const int64_t days = floor_divide(us, day_us);
    if (days < first_day || days > last_day) return false;
    const int64_t seconds = (us - days * day_us) / 1'000'000;
    const std::chrono::sys_days day{std::chrono::days{days}};
    const std::chrono::year_month_day date{day};
    switch (part) {
        case TimePart::hour: out = seconds / 3600; break;
        case TimePart::minute: out = seconds / 60 % 60; break;
        case TimePart::second: out = seconds % 60; break;
        case TimePart::day: out = static_cast<unsigned>(date.day()); break;
        case TimePart::month: out = static_cast<unsigned>(date.month()); break;
        case TimePart::year: out = static_cast<int>(date.year()); break;
        case TimePart::dayofweek: out = std::chrono::weekday{day}.c_encoding() + 1; break;  // Sunday is 1
    }
    return true;
}

}  // namespace acep
