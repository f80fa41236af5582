/** Most parts of a form that are looked through. */
const partsMax = 100;

/** Longest text of a field; a file is not meant to be read by this. */
const fieldBytesMax = 4096;

/** One part of a form: its name, and where it begins, its content begins, and the next one begins. */
interface Part {
  readonly name: string | undefined;
  readonly from: number;
  readonly contentFrom: number;
  readonly to: number;
}

/**
 * Pure: one text field of a multipart form; undefined when it is not there, is too long, or the form is none. The files
 * in it are skipped without a copy.
 */
export function formField(body: Uint8Array, contentType: string, wanted: string): string | undefined {
  const bytes = asBuffer(body);
  for (const {name, contentFrom, to} of partsOf(bytes, contentType)) {
    if (name !== wanted) continue;
    const text = bytes.subarray(contentFrom, Math.max(contentFrom, to - 2)); // without the end of its last line
    return text.length > fieldBytesMax ? undefined : text.toString();
  }
  return undefined;
}

/** Pure: the form with this text in the field, once; everything else stays as it was, byte for byte. */
export function withFormField(body: Uint8Array, contentType: string, field: string, text: string): Uint8Array {
  const bytes = asBuffer(body);
  const parts = [...partsOf(bytes, contentType)];
  const [first] = parts;
  if (first === undefined) return body;
  const pieces: Buffer[] = [
    bytes.subarray(0, first.from),
    Buffer.from(`--${boundaryOf(contentType)}\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${text}\r\n`),
  ];
  let kept = first.from;
  for (const {from, to} of parts.filter(({name}) => name === field)) {
    pieces.push(bytes.subarray(kept, from));
    kept = to;
  }
  return Buffer.concat([...pieces, bytes.subarray(kept)]);
}

function* partsOf(bytes: Buffer, contentType: string): Generator<Part> {
  const mark = boundaryOf(contentType);
  if (mark === undefined) return;
  const delimiter = `--${mark}`;
  let from = bytes.indexOf(delimiter);
  for (let parts = 0; from >= 0 && parts < partsMax; parts += 1) {
    const next = bytes.indexOf(`\r\n${delimiter}`, from);
    const to = next < 0 ? bytes.length : next + 2;
    const headEnd = bytes.subarray(from + delimiter.length, to).indexOf('\r\n\r\n');
    if (headEnd >= 0) {
      const headFrom = from + delimiter.length;
      const head = bytes.subarray(headFrom, headFrom + headEnd).toString();
      yield {name: fieldName(head), from, contentFrom: headFrom + headEnd + 4, to};
    }
    from = next < 0 ? -1 : to;
  }
}

function boundaryOf(contentType: string): string | undefined {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/iu.exec(contentType);
  return boundary?.[1] ?? boundary?.[2];
}

function fieldName(head: string): string | undefined {
  return /^content-disposition:.*;\s*name="?([^";\r\n]+)"?/imu.exec(head)?.[1];
}

function asBuffer(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}
