// Columns of numbers that grow, and searching in them. A run of 100,000 events is a few of these
// rather than as many objects, so that nothing is collected while somebody looks.

/** A growing column of floats. */
export class Column {
  constructor(room = 64) {
    this.values = new Float64Array(room);
    this.length = 0;
  }

  push(value) {
    if (this.length === this.values.length) {
      const larger = new Float64Array(this.length * 2);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.length++] = value;
  }

  at(index) {
    return this.values[index];
  }

  set(index, value) {
    this.values[index] = value;
  }

  get last() {
    return this.length ? this.values[this.length - 1] : undefined;
  }
}

/** Number of the first `length` values that are at most `wanted`; the values are in order. */
export function upperBound(values, length, wanted) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Number of the first `length` values that are below `wanted`; the values are in order. */
export function lowerBound(values, length, wanted) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A quantity that keeps a value until the next one: times and values. */
export class Series {
  constructor() {
    this.times = new Column(16);
    this.values = new Column(16);
  }

  push(time, value) {
    // Two values of one instant are one step.
    if (this.times.length && this.times.last === time) {
      this.values.set(this.values.length - 1, value);
      return;
    }
    this.times.push(time);
    this.values.push(value);
  }

  get length() {
    return this.times.length;
  }

  /** Index of the value that holds at `time`; -1 before the first. */
  indexAt(time) {
    return upperBound(this.times.values, this.times.length, time) - 1;
  }

  /** The value that holds at `time`; undefined before the first. */
  at(time) {
    const index = this.indexAt(time);
    return index < 0 ? undefined : this.values.at(index);
  }
}
