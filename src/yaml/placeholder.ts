const variable = /\$\{[A-Za-z_][\w.:-]*\}|\$\([A-Z_][A-Z0-9_]*\)/u;

/** Behind what is wrong with a text that holds a place that a tool was to fill in; empty for any other. */
export function placeholderHint(text: string): string {
  const isPlaceholder = holds(text, "{{", "}}") || holds(text, "{%", "%}") || variable.test(text);
  return isPlaceholder ? "; it contains an unfilled placeholder" : "";
}

/** Looked for without a pattern: one would begin again at each of a million open brackets. */
function holds(text: string, open: string, close: string): boolean {
  const at = text.indexOf(open);
  return at !== -1 && text.includes(close, at + open.length);
}

/** Not behind a quote, where it is a text like any other, nor behind a comment's beginning. */
const helm = /^[^"'#]*\{\{/u;
const jinja = /^[^"'#]*\{%/u;

/** What lines really are that are no YAML; undefined when none is of a template. */
export function templateProblem(lines: readonly string[]): string | undefined {
  if (lines.some((each) => jinja.test(each))) return "is a Jinja template: render it first";
  if (lines.some((each) => helm.test(each))) return "is a Helm template: render it first (helm template)";
  return undefined;
}
