/** A piece of an expanded text. Values of variables may be bytes. */
export type TextPart = string | Uint8Array;

const encoder = new TextEncoder();

/**
 * Splits a text at its `$(NAME)` references and replaces those that `lookup` knows. `$$` stands for `$`, so `$$(NAME)`
 * stays `$(NAME)`; unknown names and any other `$` stay. Linear time.
 * @returns the parts in order: joined, they may be very long, so see first whether they fit (ExpansionRoom)
 * @example expandParts("$(A) $$(A) $(B)", (name) => (name === "A" ? "1" : undefined)).join("") // "1 $(A) $(B)"
 */
export function expandParts<T extends TextPart>(text: string, lookup: (name: string) => T | undefined): (string | T)[] {
  const parts: (string | T)[] = [];
  const lastCloser = text.lastIndexOf(")");
  let written = 0;
  for (let at = text.indexOf("$"); at >= 0; at = text.indexOf("$", at)) {
    if (text[at + 1] === "$") {
      parts.push(text.slice(written, at + 1));
      at = written = at + 2;
    } else if (text[at + 1] === "(" && at + 2 <= lastCloser) {
      const closer = text.indexOf(")", at + 2);
      const value = lookup(text.slice(at + 2, closer));
      if (value !== undefined) {
        parts.push(text.slice(written, at), value);
        written = closer + 1;
      }
      at = closer + 1;
    } else {
      at++;
    }
  }
  parts.push(text.slice(written));
  return parts.filter((part) => part !== "");
}

/** The bytes of an expanded text. */
export function joinParts(parts: readonly TextPart[]): Uint8Array {
  const pieces = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  const result = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    result.set(piece, offset);
    offset += piece.length;
  }
  return result;
}
