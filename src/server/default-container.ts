/** The annotation with a pod's default container. */
export const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container";

export interface ContainerChoice {
  readonly name: string;
  /** A note for the user about the choice; undefined: none needed. */
  readonly note?: string;
}

/**
 * The default container, as kubectl chooses it: that of the annotation, else the first; undefined without containers.
 * Pure.
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
