import type { sourceFacts, sourceTerms } from "../vocabulary/sources.ts";
import type { Meanings } from "./meaning.ts";

export const sourceMeanings = {
  ManifestRejected: {
    means:
      "A manifest is invalid, or its pod needs what the machine does not give now. The pods that it defined before keep running.",
    remedy: "Correct the field, or remove the obstacle, that the message names.",
  },
  ManifestMended: { means: "A rejected manifest is valid again, or its pod was applied." },
  ManifestWarning: {
    means: "A manifest is valid but doubtful, e.g. it uses a deprecated field.",
    remedy: "See the message.",
  },
  ManifestWarningOver: { means: "The warning no longer applies." },
  PodAdded: { means: "A source delivered a new pod." },
  PodChanged: { means: "A source delivered a changed pod." },
  PodRemoved: { means: "No source has the pod any more; it is stopped and removed." },
  FailedValidation: {
    means: "The pod is ignored because another manifest defines a pod of the same name or UID.",
    remedy: "Rename or remove one of them.",
  },
  ObjectsChanged: { means: "A ConfigMap, Secret or other object of the pod changed." },
  DuplicateManifest: { means: "Cause: another manifest with the same name or UID came first." },
  ManifestAdded: { means: "Cause: a manifest defines a new pod." },
  ManifestChanged: { means: "Cause: a manifest was changed." },
  ManifestRemoved: { means: "Cause: no manifest defines the pod any more." },
  ManifestReturned: { means: "Cause: the manifest was removed and added again." },
} as const satisfies Meanings<keyof (typeof sourceTerms & typeof sourceFacts)>;
