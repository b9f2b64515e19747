import type { ScalarStyle } from "./tokens.ts";

/** A value of a document as it is written. */
export type YamlNode = ScalarNode | AliasNode | ListNode | MapNode;

interface NodeBase {
  /** Where it begins, behind its anchor and tag. */
  readonly start: number;
}

export interface ScalarNode extends NodeBase {
  readonly kind: "scalar";
  readonly style: ScalarStyle;
  /** Of a quoted one as it is written, quotes included. */
  readonly text: string;
  /** Written out, e.g. `tag:yaml.org,2002:int`; those of lists and maps mean nothing. */
  readonly tag?: string;
}

export interface AliasNode extends NodeBase {
  readonly kind: "alias";
  /** Undefined when no anchor before it has its name. */
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

/** Levels of nesting. */
export const maxDepth = 64;
export const tooDeep = `nests deeper than ${maxDepth} levels`;
