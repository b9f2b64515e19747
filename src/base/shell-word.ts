/**
 * A word of a command that is printed for a person: quoted, if a POSIX shell would otherwise read it as something else. Double
 * quotes where possible, because such commands often stand in single ones.
 */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/u.test(text)) return text;
  if (!/["\\$`!]/u.test(text)) return `"${text}"`;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
