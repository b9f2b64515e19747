// The only permitted escape sequences: Select Graphic Rendition (colours, ECMA-48 8.3.117).
const unsafeButStyle =
  /(\u001b\[[0-9;:]*m)|\t|[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;
const STYLE_RESET = "\u001b[0m";

/**
 * Makes a container's output safe for a terminal: colours and tabs stay, other control sequences (titles, clipboard,
 * cursor, queries) are escaped. Colours end with the line. For terminals only: pipes receive the bytes unchanged.
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
