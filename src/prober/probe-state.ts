/** What probes say of a container. A probe that the container has not, or that nobody runs, has no say. */
export interface ProbeState {
  /** Readiness probe: false until it has succeeded. */
  readonly ready?: boolean;
  /** Startup probe: false until it has succeeded. */
  readonly started?: boolean;
}
