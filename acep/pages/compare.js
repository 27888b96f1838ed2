// Comparisons of the filter: numbers are compared exactly as they are written, times up to the length that is given.

// Return a number that is written in decimals as digits times a power of ten, or null for another text.
function decimalOf(text) {
  const infinite = text.match(/^([+-]?)inf(inity)?$/i);
  if (infinite) return { digits: infinite[1] === "-" ? -1n : 1n, exponent: Infinity };
  const parts = text.match(/^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?$/i);
  if (!parts || !(parts[2] || parts[3])) return null;
  const fraction = parts[3] || "";
  const digits = BigInt(parts[2] + fraction);
  return { digits: parts[1] === "-" ? -digits : digits, exponent: Number(parts[4] || 0) - fraction.length };
}

// Return a number below, at or above zero as one number is below, equal to or above another.
function compareDecimals(a, b) {
  const sign = (number) => Number(number.digits > 0n) - Number(number.digits < 0n);
  if (sign(a) !== sign(b) || !sign(a)) return sign(a) - sign(b);
  const size = (number) => number.digits.toString().replace("-", "").length + number.exponent;
  if (size(a) !== size(b)) return sign(a) * (size(a) < size(b) ? -1 : 1);
  if (a.exponent === Infinity) return 0;
  const least = Math.min(a.exponent, b.exponent);
  const [x, y] = [a, b].map((number) => number.digits * 10n ** BigInt(number.exponent - least));
  return Number(x > y) - Number(x < y);
}

const compareTexts = (a, b) => Number(a > b) - Number(a < b);

// Return the year of a time and what is written after it, or null for a text that does not begin as a time.
function timeOf(text) {
  const parts = text.replace("T", " ").replace(/Z$/, "").match(/^([+-]?\d{4,})((?:-[\d: .-]*)?)$/);
  return parts && { year: Number(parts[1]), rest: parts[2].trimEnd() };
}

// Return a function that compares the value of a row with a text (null: the row has no value), or a text that says what
// is wrong.
function comparisonWith(column, given, unit) {
  if (column.kind === "text" || given === "null") return (row) => compareTexts(column.texts[row], given);
  if (column.kind === "time") {
    const time = timeOf(given);
    if (!time) return `${column.name} is compared with a time, such as 2024-05-01 or 2024`;
    return (row) => {
      const value = timeOf(column.texts[row]);
      return value && (value.year - time.year || compareTexts(value.rest.slice(0, time.rest.length), time.rest));
    };
  }
  const number = decimalOf(given);
  if (!number) return `${column.name} is compared with a number${column.kind === "duration" ? ` of ${unit}` : ""}`;
  if (column.kind === "duration") {
    return (row) => (column.numbers[row] === null ? null : column.numbers[row] - Number(given));
  }
  return (row) => {
    const value = decimalOf(column.texts[row]);
    return value && compareDecimals(value, number);
  };
}
