/**
 * Splits a text at its `$(NAME)` references and replaces those that `lookup` knows. `$$` stands for `$`, so `$$(NAME)`
 * stays `$(NAME)`; unknown names and any other `$` stay. Linear time.
 */
export function expandParts<T>(text: string, lookup: (name: string) => T | undefined): (string | T)[] {
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

/**
 * {@link expandParts} for texts.
 * @example expand("$(A) $$(A) $(B)", (name) => (name === "A" ? "1" : undefined)) // "1 $(A) $(B)"
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  return expandParts(text, lookup).join("");
}
