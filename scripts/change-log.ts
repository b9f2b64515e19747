/** Sections of CHANGELOG.md from the subjects of commits, which say why. */

const head = "# Changes\n";

/**
 * The change log with a section of this version on top; one that it has already is made again.
 * @param text CHANGELOG.md
 * @param date as 2026-11-26
 * @param subjects of the commits since the version before, newest first
 */
export function withSection(text: string, version: string, date: string, subjects: readonly string[]): string {
  const title = `## ${version}`;
  const sections = text.slice(head.length).split(/^(?=## )/mu);
  const others = sections.filter((section) => !section.startsWith(`${title},`) && section.trim() !== "");
  const lines = subjects.map((subject) => `- ${subject}`);
  const section = `${title}, ${date}\n\n${lines.join("\n")}\n`;
  return [head, section, ...others.map((other) => `${other.trimEnd()}\n`)].join("\n");
}
