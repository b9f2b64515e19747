import type { ImageErrorReason } from "./image-error.ts";

/** `imagePullPolicy` of a container, defaults applied. */
export type PullPolicy = "Always" | "IfNotPresent" | "Never";

/** What to do for an image: use it as it is here, pull it, or give up because the policy forbids to pull. */
export type PullDecision = "use" | "pull" | "refuse";

/** True when the policy asks whether the image is here; `Always` goes to the registry at each start. */
export function looksFirst(policy: PullPolicy): boolean {
  return policy !== "Always";
}

/** Decides by the policy and by whether the runtime has the image (not asked for `Always`). */
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

/** A failed pull as the container's status tells it. */
export interface PullFailure {
  readonly reason: ImageErrorReason;
  readonly message: string;
}

/** The two failures that a runtime marks by the beginning of its message (cri-api/pkg/errors), and all others. */
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
