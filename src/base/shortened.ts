/**
 * The beginning and the end of a long text, cut at spaces where there are any nearby. A text that is hardly longer than
 * both stays whole. Pure.
 * @param begin characters of its beginning at most
 * @param end characters of its end at most
 */
export function shortened(text: string, begin: number, end: number): string {
  const between = " … ";
  if (text.length <= begin + between.length + end) return text;
  const spaceBefore = text.lastIndexOf(" ", begin);
  const to = spaceBefore >= begin / 2 ? spaceBefore : begin;
  const from = text.length - end;
  const spaceAfter = text.indexOf(" ", from - 1);
  return [text.slice(0, to), text.slice(spaceAfter !== -1 && spaceAfter < from + end / 2 ? spaceAfter + 1 : from)].join(
    between,
  );
}
