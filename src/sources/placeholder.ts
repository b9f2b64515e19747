const placeholder = /\{\{[^]*\}\}|\{%[^]*%\}|\$\{[A-Za-z_][\w.:-]*\}|\$\([A-Z_][A-Z0-9_]*\)/u;

/** Behind what is wrong with a text that holds a place that a tool was to fill in; empty for any other. */
export function placeholderHint(text: string): string {
  return placeholder.test(text) ? "; it holds a placeholder that nobody filled in" : "";
}

/** Not behind a quote, where it is a text like any other, nor behind a comment's beginning. */
const helm = /^[^"'#]*\{\{/u;
const jinja = /^[^"'#]*\{%/u;

/** What a line really is that is no YAML; undefined when it is no line of a template. */
export function templateProblem(text: string, line: number): string | undefined {
  // A parser tells of the line after as well.
  const around = text.split("\n").slice(Math.max(0, line - 2), line);
  if (around.some((each) => jinja.test(each))) return "is a Jinja template: render it first";
  if (around.some((each) => helm.test(each))) return "is a Helm template: render it first (helm template)";
  return undefined;
}
