package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (j *judgement) valid() finding {
	if len(j.observed.Faults) > 0 {
		return no(ReasonInvalid, faultsMessage(j.observed.Faults))
	}
	return yes(ReasonValid, "nothing is wrong with the resource")
}

func (j *judgement) relayFound() finding {
	name := j.observed.Relay.Name
	switch j.observed.Relay.State {
	case RelayMissing:
		return no(ReasonRelayMissing, "OutboxRelay "+name+" does not exist in this namespace; it is waited for")
	case RelayInvalid:
		return no(ReasonRelayInvalid, "OutboxRelay "+name+" has mistakes; see its condition Valid")
	default:
		return yes(ReasonRelayFound, "OutboxRelay "+name+" is there")
	}
}

func (j *judgement) available() finding {
	deployment := j.observed.Deployment
	problem, refusal := podProblem(j.observed.Pods), refused(deployment)
	switch {
	case deployment == nil:
		return no(ReasonNoDeployment, "there is no Deployment")
	case available(deployment):
		return yes(ReasonPodsAvailable, "at least one pod is ready")
	case j.observed.Replicas == 0:
		return no(ReasonScaledToZero, "spec.replicas is 0")
	case refusal != "":
		return no(ReasonPodsRefused, refusal)
	case problem != "":
		return no(ReasonPodFailing, problem)
	default:
		return no(ReasonPodsUnavailable, "no pod is ready")
	}
}

func (j *judgement) progressing() finding {
	switch deployment := j.observed.Deployment; {
	case deployment == nil:
		return no(ReasonNoDeployment, "there is no Deployment")
	case rolledOut(deployment):
		return no(ReasonRolledOut, "all pods are of this generation")
	case deadlineExceeded(deployment):
		return no(ReasonProgressDeadlineExceeded, "the pods did not become ready in time")
	default:
		return yes(ReasonRollingOut, "pods of this generation are on their way")
	}
}

func (j *judgement) database() finding {
	good := yes(ReasonReachable, "the database answers, and its schema fits")
	return j.reported(TypeDatabaseReachable, partDatabase, good)
}

func (j *judgement) stream() finding {
	if j.pipeline {
		return j.reported(TypeStreamReady, partStream, yes(ReasonUsable, "stream and consumer are there"))
	}
	return j.reported(TypeStreamReady, partStream, yes(ReasonUsable, "the stream is there"))
}

// reported is what the daemon tells of one of its servers. It looks at the database first, and tells one reason at a
// time: while the database is away, it tells nothing of the broker.
func (j *judgement) reported(kind string, about part, good finding) finding {
	daemon := j.observed.Daemon
	problem := daemon.problem()
	switch {
	case j.observed.Deployment == nil:
		return unknown(ReasonNoDeployment, "there is no Deployment")
	case j.observed.Replicas == 0:
		return unknown(ReasonScaledToZero, "spec.replicas is 0: nothing looks")
	case daemon.settling():
		before := j.was(kind)
		if before != nil && before.Status == metav1.ConditionTrue && available(j.observed.Deployment) {
			return good // One pod of several that begins or ends says nothing against the others.
		}
		return unknown(ReasonStarting, "the "+j.daemonName()+" has not looked yet")
	case !daemon.Answered:
		return unknown(ReasonNotReported, notAnswered(j.daemonName(), daemon.Problem))
	case problem == nil:
		return good
	case problem.part == about:
		return no(problem.reason, problem.message)
	case problem.part == partStream:
		return good
	default:
		return unknown(ReasonNotReported, "the "+j.daemonName()+" reports "+string(problem.reason)+" first")
	}
}

func notAnswered(name, problem string) string {
	if problem == "" {
		return "the " + name + " was not asked yet"
	}
	return steady("the " + name + " does not answer: " + problem)
}
