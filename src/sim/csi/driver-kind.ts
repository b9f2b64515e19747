export interface DriverKind {
  readonly name: string;
  /** It stages volumes, once per node, before it publishes them. */
  readonly stages: boolean;
  /** It expands and measures them. */
  readonly canMore?: boolean;
  /** It works on calls for one volume side by side: the specification has the kubelet make one at a time. */
  readonly hasNoLocks?: boolean;
}
