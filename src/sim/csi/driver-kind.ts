export interface DriverKind {
  readonly name: string;
  /** It stages volumes, once per node, before it publishes them. */
  readonly stages: boolean;
  /** It expands and measures them. */
  readonly canMore?: boolean;
}
