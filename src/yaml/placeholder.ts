const variable = /\$\{[A-Za-z_][\w.:-]*\}|\$\([A-Z_][A-Z0-9_]*\)/u;

/** A hint for text with a placeholder that a tool should have filled in; empty for any other. */
export function placeholderHint(text: string): string {
  const isPlaceholder = holds(text, "{{", "}}") || holds(text, "{%", "%}") || variable.test(text);
  return isPlaceholder ? "; it contains an unfilled placeholder" : "";
}

/** Not a regular expression: that would restart at each of a million open brackets. */
function holds(text: string, open: string, close: string): boolean {
  const at = text.indexOf(open);
  return at !== -1 && text.includes(close, at + open.length);
}

/** Not after a quote, where braces are ordinary text, nor in a comment. */
const helm = /^[^"'#]*\{\{/u;
const jinja = /^[^"'#]*\{%/u;

/** Explains invalid YAML that comes from a template; undefined otherwise. */
export function templateProblem(lines: readonly string[]): string | undefined {
  if (lines.some((each) => jinja.test(each))) return "is a Jinja template: render it first";
  if (lines.some((each) => helm.test(each))) return "is a Helm template: render it first (helm template)";
  return undefined;
}
