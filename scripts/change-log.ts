/** Sections of CHANGELOG.md from commit subjects, which say why. */

const head = "# Changes\n";

/**
 * Adds a section for this version at the top of the change log, or replaces it.
 * @param text CHANGELOG.md
 * @param date such as 2026-11-26
 * @param subjects of the commits since the previous version, newest first
 */
export function withSection(text: string, version: string, date: string, subjects: readonly string[]): string {
  const title = `## ${version}`;
  const sections = text.slice(head.length).split(/^(?=## )/mu);
  const others = sections.filter((section) => !section.startsWith(`${title},`) && section.trim() !== "");
  const lines = subjects.map((subject) => `- ${subject}`);
  const section = `${title}, ${date}\n\n${lines.join("\n")}\n`;
  return [head, section, ...others.map((other) => `${other.trimEnd()}\n`)].join("\n");
}
