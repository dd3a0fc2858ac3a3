// How values are written for people.

/// A duration in milliseconds, in two units at most.
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === 3 && seconds < 10) return `${(ms / 1000).toFixed(1)} s`;
  const parts = [];
  let rest = seconds;
  for (const [unit, size] of units.slice(first, first + 2)) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${unit}`);
    rest %= size;
  }
  return parts.join(" ");
}

/// A time of day, with the date when it is not today's.
export function when(text) {
  const time = new Date(text);
  const today = new Date().toDateString() === time.toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString();
}

/// A count with separators.
export function count(number) {
  return number.toLocaleString("en");
}

/// A rate a second.
export function rate(number) {
  return `${number < 10 ? number.toFixed(1) : count(Math.round(number))}/s`;
}

/// A share of a second, as latencies have it.
export function latency(seconds) {
  if (seconds === null) return "–";
  if (seconds === Infinity) return "> 10 s";
  return seconds < 1 ? `${+(seconds * 1000).toPrecision(3)} ms` : `${+seconds.toPrecision(3)} s`;
}
