import type { imageFacts, imageTerms } from "../vocabulary/images.ts";
import type { Meanings } from "./meaning.ts";

export const imageMeanings = {
  PullImage: {
    means: "An image is pulled. The outcome has the duration, or the reason of the failure.",
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
    means: "The container runtime cannot report whether it has the image.",
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
  VolumeImageMissing: {
    means: "The image of a volume that the container mounts cannot be used, so the container waits.",
    remedy: "See the message; correct the reference or pullPolicy in spec.volumes[].image, or the pull secrets.",
  },
  RemoveImage: {
    means: "An unused image is removed; the cause is its age or a full image file system.",
    remedy: "If it failed: see the message and the runtime's log.",
  },
  ImagesCollected: {
    means: "A collection of images ended; the message has the freed space and the images that stay.",
  },
  FreeDiskSpaceFailed: {
    means: "The image file system is above its high threshold, and removing unused images did not free enough.",
    remedy: "See the message for the images that stay; free other files on that disk, or enlarge it.",
  },
  InvalidDiskCapacity: {
    means: "The image file system reports a capacity of 0.",
    remedy: "Check the mount of the runtime's image directory.",
  },
  ImageGCFailed: {
    means: "The collection of images failed several times in a row.",
    remedy: "See the message; 'podwright gc --preview' shows which images stay and why.",
  },
  ImageFsFull: { means: "Cause: the image file system is above imageGCHighThresholdPercent." },
  ImageTooOld: { means: "Cause: the image was not used for longer than imageMaximumGCAge." },
} as const satisfies Meanings<keyof (typeof imageTerms & typeof imageFacts)>;
