/** How a scalar is written; `json` is one of JSON, a text in quotes or not. */
export type ScalarStyle = "plain" | "single" | "double" | "block" | "json";

/** What stands for itself. `list` and `map` begin a block, which `end` ends; `?` is before any key, written or not. */
type Mark = "[" | "]" | "{" | "}" | "," | "-" | "?" | ":" | "list" | "map" | "end" | "---" | "...";

interface Place {
  readonly start: number;
}

export interface ScalarToken extends Place {
  readonly kind: "scalar";
  readonly style: ScalarStyle;
  /** Of a quoted one as it is written, quotes included. */
  readonly text: string;
  readonly end: number;
}

export interface TagToken extends Place {
  readonly kind: "tag";
  /** `!`, `!!` or `!name!`; empty for a tag that is written out. */
  readonly handle: string;
  readonly suffix: string;
}

/** A piece of a document. The last one of each is `over`, or `broken`, where it can't be told what stands there. */
export type Token =
  | ScalarToken
  | TagToken
  | (Place & { readonly kind: Mark | "over" })
  | (Place & { readonly kind: "anchor" | "alias"; readonly name: string })
  | (Place & { readonly kind: "version"; readonly version: string })
  | (Place & { readonly kind: "handle"; readonly handle: string; readonly prefix: string })
  | (Place & { readonly kind: "broken"; readonly detail: string });
