/** Why a pod may not run on this node; reason and message as upstream has them. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}
