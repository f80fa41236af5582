/** Most parts of a form that are looked through. */
const partsMax = 100;

/** Longest text of a field; a file is not meant to be read by this. */
const fieldBytesMax = 4096;

/**
 * Pure: one text field of a multipart form; undefined when it is not there, is too long, or the form is none. The files
 * in it are skipped without a copy.
 */
export function formField(body: Uint8Array, contentType: string, wanted: string): string | undefined {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/iu.exec(contentType);
  const mark = boundary?.[1] ?? boundary?.[2];
  if (mark === undefined) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const delimiter = `--${mark}`;
  let from = bytes.indexOf(delimiter);
  for (let parts = 0; from >= 0 && parts < partsMax; parts += 1) {
    const next = bytes.indexOf(`\r\n${delimiter}`, from);
    const part = bytes.subarray(from + delimiter.length, next < 0 ? bytes.length : next);
    const headEnd = part.indexOf('\r\n\r\n');
    if (headEnd >= 0 && fieldName(part.subarray(0, headEnd).toString()) === wanted) {
      const text = part.subarray(headEnd + 4);
      return text.length > fieldBytesMax ? undefined : text.toString();
    }
    from = next < 0 ? -1 : next + 2;
  }
  return undefined;
}

function fieldName(head: string): string | undefined {
  return /^content-disposition:.*;\s*name="?([^";\r\n]+)"?/imu.exec(head)?.[1];
}
