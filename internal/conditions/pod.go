package conditions

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxLastWords bounds what is shown of a container's last output.
const maxLastWords = 256

// podProblem is the worst that keeps any of the pods from running; empty: nothing. Of several the one is taken that
// comes first in the alphabet within its rank, so that the order of the pods makes no difference.
func podProblem(pods []corev1.Pod) string {
	worst, found := rankNone, ""
	for i := range pods {
		rank, message := problemOf(&pods[i])
		if rank > worst || rank == worst && message < found {
			worst, found = rank, message
		}
	}
	return clip(found)
}

// rank orders problems: what a user can act on best comes first.
type rank int

const (
	rankNone rank = iota
	rankUnschedulable
	rankCrash
	rankContainer
	rankImage
)

func problemOf(pod *corev1.Pod) (rank, string) {
	for _, status := range pod.Status.ContainerStatuses {
		if rank, message := containerProblem(status); rank != rankNone {
			return rank, message
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return rankCrash, fmt.Sprintf("a pod failed: %s: %s", pod.Status.Reason, steady(pod.Status.Message))
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return rankUnschedulable, "a pod cannot be scheduled: " + condition.Message
		}
	}
	return rankNone, ""
}

// containerProblem words itself what the kubelet words in turns: an image that cannot be pulled is ErrImagePull and
// ImagePullBackOff alternately.
func containerProblem(status corev1.ContainerStatus) (rank, string) {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable",
			"ImageInspectError", "SignatureValidationFailed":
			return rankImage, fmt.Sprintf("container %s: the image %s cannot be pulled", status.Name, status.Image)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreStartHookError":
			return rankContainer, fmt.Sprintf("container %s: %s: %s", status.Name, waiting.Reason, steady(waiting.Message))
		}
	}
	if status.Ready {
		return rankNone, ""
	}
	// Between two crashes the container is running, waiting or ended in turns.
	for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
		if ended := state.Terminated; ended != nil && ended.ExitCode != 0 {
			return rankCrash, fmt.Sprintf("container %s ended with exit code %d (%s)%s",
				status.Name, ended.ExitCode, ended.Reason, lastWords(ended.Message))
		}
	}
	return rankNone, ""
}

// lastWords are the last line of a container's output, where a program says why it gave up.
func lastWords(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	line := steady(lines[len(lines)-1])
	if line == "" || len(line) > maxLastWords {
		return ""
	}
	return ": " + line
}
