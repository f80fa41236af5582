/** Handles what is sent one after the other and to the end, also when handling one sends another. */
export function serial<T>(handle: (item: T) => void): (item: T) => void {
  const waiting: T[] = [];
  let isHandling = false;
  return item => {
    waiting.push(item);
    if (isHandling) return;
    isHandling = true;
    try {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) handle(next);
    } finally {
      isHandling = false;
    }
  };
}
