// The only escape sequences let through: Select Graphic Rendition (colours), as ECMA-48 8.3.117 writes them.
const unsafeButStyle =
  /(\u001b\[[0-9;:]*m)|\t|[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;
const STYLE_RESET = "\u001b[0m";

/**
 * What a container logged, fit for a terminal: colours and tabs stay, anything else that a terminal would obey (titles,
 * clipboard, cursor, answers back) is shown escaped. Colours end with the line. Only for terminals: a pipe gets the bytes
 * as they are.
 */
export function terminalText(text: string): string {
  let styled = false;
  const safe = text.replaceAll(unsafeButStyle, (match: string, style: string | undefined) => {
    if (style !== undefined) styled = true;
    return style !== undefined || match === "\t" ? match : escaped(match);
  });
  return styled ? safe + STYLE_RESET : safe;
}

function escaped(character: string): string {
  switch (character) {
    case "\n":
      return String.raw`\n`;
    case "\r":
      return String.raw`\r`;
    default: {
      const code = character.charCodeAt(0);
      return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    }
  }
}
