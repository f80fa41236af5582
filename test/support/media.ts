import {crc32, deflateSync} from 'node:zlib';

/** Made anew each time, always the same bytes: a hum and a few colours, in the files that every tool can read. */

const samplesPerSecond = 16_000;

/** A hum, as a WAV file. */
export function recording(seconds = 1): Buffer<ArrayBuffer> {
  const samples = Int16Array.from(
    {length: Math.round(seconds * samplesPerSecond)},
    (_, index) => 8000 * Math.sin((2 * Math.PI * 440 * index) / samplesPerSecond),
  );
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16); // length of what describes the samples
  head.writeUInt16LE(1, 20); // plain numbers
  head.writeUInt16LE(1, 22); // one channel
  head.writeUInt32LE(samplesPerSecond, 24);
  head.writeUInt32LE(samplesPerSecond * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34); // bits
  head.write('data', 36);
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer)]);
}

/** A square of colours, as a PNG file that is not compressed: its size is three bytes a pixel. */
export function picture(side: number = 16): Buffer<ArrayBuffer> {
  const rows = Array.from({length: side}, (_, y) => [
    0, // a row as it is
    ...Array.from({length: side}, (__, x) => [(x * 16) % 256, (y * 16) % 256, 128]).flat(),
  ]);
  const shape = Buffer.alloc(13);
  shape.writeUInt32BE(side, 0);
  shape.writeUInt32BE(side, 4);
  shape.set([8, 2], 8); // bits, and red, green, blue
  const mark = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const pixels = deflateSync(Buffer.from(rows.flat()), {level: 0});
  return Buffer.concat([mark, chunk('IHDR', shape), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name), content]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}
