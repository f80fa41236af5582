/** Quantities as people read them. All are pure. */

/** Decimal units with one decimal: `737.5 MB` (S48). */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let value = bytes;
  for (const unit of ['kB', 'MB', 'GB', 'TB']) {
    value /= 1000;
    if (value < 999.95 || unit === 'TB') return `${value.toFixed(1)} ${unit}`; // above, rounding would show 1000.0
  }
  return `${bytes} B`;
}

/** `just now`, `2 minutes ago` (S51). */
export function formatAgo(seconds: number): string {
  return seconds < 5 ? 'just now' : `${formatSpan(seconds)} ago`;
}

/** `4 minutes from now`: rounded down, so five minutes that have begun are four (S53). */
export function formatFromNow(seconds: number): string {
  return seconds < 1 ? 'now' : `${formatSpan(seconds)} from now`;
}

/** The largest unit that fits, rounded down. */
export function formatSpan(seconds: number): string {
  if (seconds < 60) return count(seconds, 'second');
  if (seconds < 3600) return count(seconds / 60, 'minute');
  if (seconds < 2 * 86_400) return count(seconds / 3600, 'hour');
  return count(seconds / 86_400, 'day');
}

/** `loading 40%, about 12 seconds left`, as far as that is known. */
export function loadingText(share: number | undefined, secondsLeft: number | undefined): string {
  const percent = share === undefined || share === 0 ? '' : ` ${Math.floor(share * 100)}%`;
  const left = secondsLeft === undefined || secondsLeft < 1 ? '' : `, about ${formatSpan(Math.ceil(secondsLeft))} left`;
  return `loading${percent}${left}`;
}

function count(amount: number, unit: string): string {
  const whole = Math.floor(amount);
  return `${whole} ${unit}${whole === 1 ? '' : 's'}`;
}
