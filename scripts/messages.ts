/**
 * Writes docs/messages.md: every name in podwright's journal, statuses and errors, with its meaning and its remedy.
 *
 * messages.ts
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { catalogue, type CatalogueEntry, type CatalogueKind } from "../src/journal/catalogue.ts";
import { outOfMeaning } from "../src/journal/meanings/admission.ts";

/** Where the page is, below the project's root. */
export const messagesPath = "docs/messages.md";

const head = `# Messages

Every name in podwright's journal, statuses and errors: when it appears, and what to do. \`podwright explain NAME\` prints
the same. \`scripts/messages.ts\` makes this page from [src/journal/meanings/](../src/journal/meanings).
`;

const sections: readonly { readonly title: string; readonly text: string; readonly kinds: readonly CatalogueKind[] }[] =
  [
    {
      title: "Journal entries",
      text: "The `what` of an entry ([journal.md](journal.md)), with its kind. An outcome has its action's name.",
      kinds: ["input", "observation", "decision", "action", "outcome", "note"],
    },
    { title: "Causes", text: "Codes of causes that are not names of entries.", kinds: ["cause"] },
    {
      title: "Waiting reasons",
      text: "Why a container does not run yet, in its API status; others are journal entries above.",
      kinds: ["waiting reason"],
    },
    { title: "Terminated reasons", text: "How a container ended, in its API status.", kinds: ["terminated reason"] },
    { title: "Errors", text: "Names of errors in logs and stacks.", kinds: ["error"] },
  ];

/** The page as Markdown. Pure. */
export function messagesPage(): string {
  const resources: CatalogueEntry = { name: "OutOf<resource>", kind: "decision", ...outOfMeaning };
  const entries = [...catalogue(), resources];
  const tables = sections.map(({ title, text, kinds }) => {
    const own = entries.filter(({ kind }) => kinds.includes(kind)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const shows = kinds.length > 1;
    const headRow = shows
      ? "| name | kind | meaning | remedy |\n|---|---|---|---|"
      : "| name | meaning | remedy |\n|---|---|---|";
    const rows = own.map(({ name, kind, means, remedy = "" }) => {
      return `| \`${name}\` |${shows ? ` ${kind} |` : ""} ${means.replace(/^Cause: (.)/u, (_, first: string) => first.toUpperCase())} | ${remedy} |`;
    });
    return `\n## ${title}\n\n${text}\n\n${headRow}\n${rows.join("\n")}\n`;
  });
  return head + tables.join("");
}

if (import.meta.main) writeFileSync(join(dirname(import.meta.dirname), messagesPath), messagesPage());
