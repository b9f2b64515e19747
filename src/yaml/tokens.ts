/** How a scalar is written; `json` is a JSON scalar, quoted or not. */
export type ScalarStyle = "plain" | "single" | "double" | "block" | "json";

/** Tokens without content. `list` and `map` begin a block, which `end` ends; `?` precedes any key, written or not. */
type Mark = "[" | "]" | "{" | "}" | "," | "-" | "?" | ":" | "list" | "map" | "end" | "---" | "...";

interface Place {
  readonly start: number;
}

export interface ScalarToken extends Place {
  readonly kind: "scalar";
  readonly style: ScalarStyle;
  /** For a quoted scalar with its quotes. */
  readonly text: string;
  readonly end: number;
}

export interface TagToken extends Place {
  readonly kind: "tag";
  /** `!`, `!!` or `!name!`; empty for a verbatim tag. */
  readonly handle: string;
  readonly suffix: string;
}

/** A token of a document. The last one is `over`, or `broken` at text that cannot be scanned. */
export type Token =
  | ScalarToken
  | TagToken
  | (Place & { readonly kind: Mark | "over" })
  | (Place & { readonly kind: "anchor" | "alias"; readonly name: string })
  | (Place & { readonly kind: "version"; readonly version: string })
  | (Place & { readonly kind: "handle"; readonly handle: string; readonly prefix: string })
  | (Place & { readonly kind: "broken"; readonly detail: string });
