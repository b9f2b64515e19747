import type { imageFacts, imageTerms } from "../vocabulary/images.ts";
import type { Meanings } from "./meaning.ts";

export const imageMeanings = {
  PullImage: {
    means: "An image is pulled. The outcome says how long it took, or why it failed.",
    remedy: "If it failed: check the image name, the registry and the pull secrets.",
  },
  ImagePresent: { means: "The image is already on the node, so nothing is pulled." },
  ImagePullBackOff: {
    means: "The last pull failed; the next one waits for the back-off (10 s, doubled up to 5 min).",
    remedy: "See the last PullImage of the container for the reason.",
  },
  ErrImageNeverPull: {
    means: "The image is not on the node and imagePullPolicy is Never.",
    remedy: "Load the image, or change the policy.",
  },
  ImageInspectError: {
    means: "The container runtime cannot say whether it has the image.",
    remedy: "See the message and the runtime's log.",
  },
  InvalidImageName: {
    means: "The image reference of the container is invalid.",
    remedy: "Correct spec.containers[].image.",
  },
  FailedToRetrieveImagePullSecret: {
    means: "A pull secret of the pod is missing or unusable; the pull continues without it.",
    remedy: "Create or correct the Secret, or remove it from imagePullSecrets.",
  },
  AskCredentialProvider: { means: "A credential provider plugin is run for an image." },
  CredentialProviderFailed: {
    means: "A credential provider plugin failed; the pull continues without its credentials.",
    remedy: "Run the plugin by hand with the request of the message; see --image-credential-provider-config.",
  },
} as const satisfies Meanings<keyof (typeof imageTerms & typeof imageFacts)>;
