/** The probe results of a container. A missing or inactive probe has no effect. */
export interface ProbeState {
  /** Readiness probe: false until it has succeeded. */
  readonly ready?: boolean;
  /** Startup probe: false until it has succeeded. */
  readonly started?: boolean;
}
