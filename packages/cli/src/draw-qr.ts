/** Modules of quiet around the code; two are enough on a screen, and the longest code then fits 80 columns. */
const border = 2;

/**
 * A QR code as lines of text, light where the terminal draws its foreground: as it should be on a dark background, and
 * inverted on a light one, which cameras read too.
 */
export async function drawQr(text: string): Promise<string> {
  // One command of many draws one, and none of the others should wait for that to be loaded.
  const {renderUnicodeCompact} = await import('uqr');
  return `${renderUnicodeCompact(text, {border})}\n`;
}
