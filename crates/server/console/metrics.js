// Reads the page of metrics: what the console shows of rates and latencies is what a monitoring system would see.

/// All samples: [{ name, labels, value }].
export function parse(page) {
  const samples = [];
  for (const line of page.split("\n")) {
    if (!line || line.startsWith("#")) continue;
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, key, value] of (match[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value;
    samples.push({ name: match[1], labels, value: Number(match[3].replace("+Inf", "Infinity")) });
  }
  return samples;
}

/// The sum over all labels.
export function total(samples, name) {
  return samples.filter((sample) => sample.name === name).reduce((sum, { value }) => sum + value, 0);
}

/// The sum for each value of a label.
export function totalBy(samples, name, label) {
  const sums = new Map();
  for (const sample of samples) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? "";
    sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return sums;
}

/// An upper bound of a quantile of what a histogram counted between two looks; null if it counted nothing.
export function quantile(before, after, name, q) {
  const then = totalBy(before, `${name}_bucket`, "le");
  const now = totalBy(after, `${name}_bucket`, "le");
  const bounds = [...now].map(([le, value]) => [Number(le.replace("+Inf", "Infinity")), value - (then.get(le) ?? 0)]);
  bounds.sort(([a], [b]) => a - b);
  const all = bounds.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  return bounds.find(([, value]) => value >= q * all)[0];
}
