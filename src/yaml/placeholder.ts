const variable = /\$\{[A-Za-z_][\w.:-]*\}|\$\([A-Z_][A-Z0-9_]*\)/u;

const helmHint = "; it is a Helm template: render it first (helm template)";
/** The beginning of an action that charts have: a value, or one of Helm's functions. */
const helmAction = /\{\{-?\s*(?:[.$]|include\b|template\b|tpl\b|default\b|required\b|if\b|with\b|range\b)/u;

/** A hint for text with a placeholder that a tool should have filled in; empty for any other. */
export function placeholderHint(text: string): string {
  if (holds(text, "{{", "}}") && helmAction.test(text)) return helmHint;
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
