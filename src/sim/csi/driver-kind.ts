/** What kind of a CSI driver it is. */
export interface DriverKind {
  readonly name: string;
  /** It makes volumes ready once a node, before it publishes them. */
  readonly stages: boolean;
  /** It expands and measures them. */
  readonly canMore?: boolean;
}
