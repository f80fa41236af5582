/** Most parts of a form that are looked through. */
const partsMax = 100;

/** Longest head of a part: it holds two or three short lines. */
const headBytesMax = 8192;

/** Longest text of a field; a file is not meant to be read by this. */
const fieldBytesMax = 4096;

/** One part of a form: its name, and where it begins, its content begins and ends, and the next part begins. */
interface Part {
  readonly name: string | undefined;
  readonly from: number;
  readonly contentFrom: number;
  readonly contentTo: number;
  readonly to: number;
}

/** Pure: whether a body of this type is a multipart form, which also says its boundary. */
export function isForm(contentType: string): boolean {
  return /^multipart\/form-data\s*;/iu.test(contentType);
}

/**
 * Pure: the texts of these fields of a multipart form, each as it stands there first. A field that is not there or is
 * too long has none. The files in it are skipped without a copy.
 */
export function formFields(
  body: Uint8Array,
  contentType: string,
  wanted: readonly string[],
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const seen = new Set<string>();
  for (const {name, contentFrom, contentTo} of partsOf(body, boundaryOf(contentType))) {
    if (name === undefined || !wanted.includes(name) || seen.has(name)) continue;
    seen.add(name);
    const text = body.subarray(contentFrom, contentTo);
    if (text.length <= fieldBytesMax) texts.set(name, textOf(text));
  }
  return texts;
}

/**
 * Pure: the form with these texts in these fields, each once; everything else stays as it was, byte for byte. The files
 * in it are copied once; what is no form is given back as it is.
 */
export function withFormFields(
  body: Uint8Array,
  contentType: string,
  fields: Readonly<Record<string, string>>,
): Uint8Array {
  const boundary = boundaryOf(contentType);
  const parts = [...partsOf(body, boundary)];
  const [first] = parts;
  if (first === undefined) return body;
  const added = Object.entries(fields).map(
    ([name, text]) => `--${boundary}\r\ncontent-disposition: form-data; name="${quotable(name)}"\r\n\r\n${text}\r\n`,
  );
  const pieces = [body.subarray(0, first.from), bytesOf(added.join(''))];
  let kept = first.from;
  for (const {name, from, to} of parts) {
    if (name === undefined || !Object.hasOwn(fields, name)) continue;
    pieces.push(body.subarray(kept, from));
    kept = to;
  }
  return joined([...pieces, body.subarray(kept)]);
}

function* partsOf(body: Uint8Array, boundary: string | undefined): Generator<Part> {
  if (boundary === undefined) return;
  const delimiter = bytesOf(`--${boundary}`);
  const nextLine = bytesOf(`\r\n--${boundary}`);
  let from = placeOf(delimiter, body, 0);
  for (let parts = 0; from !== undefined && parts < partsMax; parts += 1) {
    const next = placeOf(nextLine, body, from);
    const contentTo = next ?? body.length;
    const to = next === undefined ? body.length : next + 2;
    const headFrom = from + delimiter.length;
    const head = body.subarray(headFrom, Math.min(to, headFrom + headBytesMax));
    const headEnd = placeOf(emptyLine, head, 0);
    if (headEnd !== undefined) {
      const contentFrom = headFrom + headEnd + emptyLine.length;
      const name = fieldName(textOf(head.subarray(0, headEnd)));
      yield {name, from, contentFrom, contentTo: Math.max(contentFrom, contentTo), to};
    }
    from = next === undefined ? undefined : to;
  }
}

function boundaryOf(contentType: string): string | undefined {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/iu.exec(contentType);
  return boundary?.[1] ?? boundary?.[2];
}

function fieldName(head: string): string | undefined {
  return /^content-disposition:.*;\s*name="?([^";\r\n]+)"?/imu.exec(head)?.[1];
}

/** As browsers write what would end a name. */
function quotable(name: string): string {
  return name.replaceAll(/["\r\n]/gu, encodeURIComponent);
}

/**
 * Where the bytes stand first. The engine looks for the first of them, which is quick and rare in a recording. Silence
 * may be nothing else, and where it stands twice only the later one can begin what is wanted.
 */
function placeOf(wanted: Uint8Array, body: Uint8Array, from: number): number | undefined {
  const [first = 0, second] = wanted;
  for (let at = body.indexOf(first, from); at >= 0; at = body.indexOf(first, at + 1)) {
    if (second !== first) while (body[at + 1] === first) at += 1;
    if (body[at + 1] === second && wanted.every((byte, index) => body[at + index] === byte)) return at;
  }
  return undefined;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', {ignoreBOM: true}).decode(bytes);
}

const emptyLine = bytesOf('\r\n\r\n');
