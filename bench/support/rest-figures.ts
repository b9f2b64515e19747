/** What a process takes while nothing happens. */
export interface Rest {
  /** Of one core. */
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

export interface RestFigures {
  readonly pods: number;
  /** Containers beside them that have ended, of pods that are not the kubelet's. */
  readonly dead: number;
  readonly floor: Rest;
  readonly kubelet: Rest;
}

export function restName({ pods, dead }: Pick<RestFigures, "pods" | "dead">): string {
  return `at rest, ${pods} pods${dead > 0 ? ` beside ${dead} dead containers` : ""}`;
}
