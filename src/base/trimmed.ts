/**
 * The text without these characters at its ends. The time is proportional to its length: a regular expression that seeks
 * the end (`/ +$/`) starts again at each of them within the text. Pure.
 */
export function trimmed(text: string, characters: string): string {
  let from = 0;
  while (from < text.length && characters.includes(text.charAt(from))) from++;
  return trimmedEnd(text.slice(from), characters);
}

/** Like {@link trimmed}, at the end alone. */
export function trimmedEnd(text: string, characters: string): string {
  let to = text.length;
  while (to > 0 && characters.includes(text.charAt(to - 1))) to--;
  return text.slice(0, to);
}
