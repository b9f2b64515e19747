/** The annotation by which a pod says which of its containers is meant when none is named. */
export const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container";

export interface ContainerChoice {
  readonly name: string;
  /** What the person should know of the choice; undefined when there was none. */
  readonly note?: string;
}

/**
 * Which container is meant when none is named, as kubectl chooses: the one of the annotation, else the first; undefined of
 * a pod without containers. Pure.
 * @param names of all its containers, regular ones first
 */
export function defaultContainer(names: readonly string[], annotated: string | undefined): ContainerChoice | undefined {
  const [first] = names;
  if (first === undefined) return undefined;
  if (annotated !== undefined && names.includes(annotated)) return { name: annotated };
  const among = names.length > 1 ? `Defaulted container "${first}" out of: ${names.join(", ")}` : undefined;
  const missing =
    annotated === undefined || annotated === ""
      ? undefined
      : `the pod has no container ${JSON.stringify(annotated)}, which its annotation ${defaultContainerAnnotation} names`;
  const note = [missing, among].filter((part) => part !== undefined).join("; ");
  return note === "" ? { name: first } : { name: first, note };
}
