import type { ImageErrorReason } from "./image-error.ts";

/** `imagePullPolicy` of a container, defaults applied. */
export type PullPolicy = "Always" | "IfNotPresent" | "Never";

/** Use the present image, pull it, or fail because the policy forbids a pull. */
export type PullDecision = "use" | "pull" | "refuse";

/** True when the policy depends on whether the image is present; `Always` contacts the registry at each start. */
export function looksFirst(policy: PullPolicy): boolean {
  return policy !== "Always";
}

/** Decides by the policy and the image's presence (which is irrelevant for `Always`). */
export function decidePull(policy: PullPolicy, present: boolean): PullDecision {
  switch (policy) {
    case "Always":
      return "pull";
    case "IfNotPresent":
      return present ? "use" : "pull";
    case "Never":
      return present ? "use" : "refuse";
  }
}

/** A failed pull as in the container's status. */
export interface PullFailure {
  readonly reason: ImageErrorReason;
  readonly message: string;
}

/** Recognises the two failures that runtimes mark by a message prefix (cri-api/pkg/errors). */
export function judgePullFailure(image: string, message: string): PullFailure {
  const marked = [
    ["RegistryUnavailable", "the registry is unavailable"],
    ["SignatureValidationFailed", "the signature validation failed"],
  ] as const;
  for (const [reason, words] of marked) {
    if (message.startsWith(reason)) {
      return { reason, message: `image pull failed for ${image} because ${words}${message.slice(reason.length)}` };
    }
  }
  return { reason: "ErrImagePull", message };
}
