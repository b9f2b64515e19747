/** A command line of podwright that a document shows. */
export interface DocumentedCommand {
  readonly line: number;
  /** The words after `podwright`, with placeholders such as `POD`. */
  readonly words: readonly string[];
  /** From the running text, which may name a command without its operands. */
  readonly isInline: boolean;
}

/**
 * The command lines in a Markdown document: in indented blocks, in fenced blocks after `$ `, and in code spans that begin with
 * `podwright`.
 */
export function documentedCommands(markdown: string): DocumentedCommand[] {
  const found: DocumentedCommand[] = [];
  let isFenced = false;
  let continued: { readonly line: number; readonly text: string } | undefined;
  for (const [index, raw] of markdown.split("\n").entries()) {
    const line = continued?.line ?? index + 1;
    const text = `${continued?.text ?? ""}${raw}`;
    continued = undefined;
    if (raw.startsWith("```")) {
      isFenced = !isFenced;
    } else if (isFenced ? text.startsWith("$ ") : text.startsWith("    ")) {
      if (text.endsWith("\\")) continued = { line, text: text.slice(0, -1) };
      else found.push(...commandsIn(text.replace(/^\$ /u, "")).map((words) => ({ line, words, isInline: false })));
    } else if (!isFenced) {
      for (const [, span = ""] of text.matchAll(/`([^`]+)`/gu)) {
        found.push(...commandsIn(span.replaceAll("\\|", "|")).map((words) => ({ line, words, isInline: true })));
      }
    }
  }
  return found;
}

/** The commands in the indented blocks below a heading, of all programs, without comments and as a shell takes them. */
export function printedCommands(markdown: string, heading: string): string[] {
  const sections = markdown.split(/^#+ /mu);
  const section = sections.find((each) => each.startsWith(`${heading}\n`)) ?? "";
  const blocks = section.replaceAll(/\\\n\s*/gu, "").split("\n");
  return blocks
    .filter((line) => line.startsWith("    "))
    .map((line) => withoutComment(line.trim()))
    .filter((line) => line !== "");
}

function withoutComment(line: string): string {
  return line.replace(/(?:^|\s+)#\s.*$/u, "");
}

/** podwright's command lines among those of a shell's line, without its comment. */
function commandsIn(line: string): string[][] {
  const text = withoutComment(line.trim());
  return text.split(/&&|;|\s\|\s/u).flatMap((part) => {
    const [, rest] = /^\s*(?:source <\()?(?:sudo )?(?:bin\/)?podwright(?:\s+(.*?))?\)?\s*$/u.exec(part) ?? [];
    // A version, as `podwright version` prints it.
    if (rest === undefined || /^\d/u.test(rest)) return [];
    return [wordsOf(rest.replace(/\s>.*$/u, ""))];
  });
}

/** Words of a command, or of its synopsis: `[NAME…]` is given, and of `A|B` the first. */
function wordsOf(text: string): string[] {
  const words = text.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/gu) ?? [];
  return words
    .map((word) => word.replaceAll(/[[\]…]/gu, "").replaceAll(/^["']|["']$/gu, ""))
    .map((word) => word.split("|")[0] ?? "")
    .filter((word) => word !== "");
}
