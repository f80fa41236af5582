/** Bytes as people read them, in decimal units with one decimal: `737.5 MB` (S48). */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let value = bytes;
  for (const unit of ['kB', 'MB', 'GB', 'TB']) {
    value /= 1000;
    if (value < 999.95 || unit === 'TB') return `${value.toFixed(1)} ${unit}`; // above, rounding would show 1000.0
  }
  return `${bytes} B`;
}
