import type { ScalarStyle } from "./tokens.ts";

/** A node of a document. */
export type YamlNode = ScalarNode | AliasNode | ListNode | MapNode;

interface NodeBase {
  /** Where the value begins, after its anchor and tag. */
  readonly start: number;
}

export interface ScalarNode extends NodeBase {
  readonly kind: "scalar";
  readonly style: ScalarStyle;
  /** For a quoted scalar with its quotes. */
  readonly text: string;
  /** In full, e.g. `tag:yaml.org,2002:int`; ignored for lists and maps. */
  readonly tag?: string;
}

export interface AliasNode extends NodeBase {
  readonly kind: "alias";
  /** Undefined when no earlier anchor has its name. */
  readonly target: YamlNode | undefined;
}

export interface ListNode extends NodeBase {
  readonly kind: "list";
  readonly items: readonly YamlNode[];
}

export interface MapNode extends NodeBase {
  readonly kind: "map";
  readonly entries: readonly (readonly [key: YamlNode, value: YamlNode])[];
}

/** Maximum nesting depth. */
export const maxDepth = 64;
export const tooDeep = `nests deeper than ${maxDepth} levels`;
