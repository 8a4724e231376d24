"""From per-request rows to the numbers of a record. Pure functions on NumPy arrays; no pytest, no HTTP.

The keys of a record's ``metrics`` (seconds and tokens unless said otherwise; null where it was not measured):

Speed
    ``output_throughput``           output tokens ÷ wall time of the windows, tok/s (usable rounds together)
    ``output_throughput_saturated`` the same, while all slots were busy
    ``request_throughput``          requests ÷ wall time of the windows, 1/s (a conversation's turns are requests)
    ``requests_in_flight``          mean number of requests in flight
    ``duration``                    wall time of the measured rounds
    ``rounds``                      a list, one object a round: ``duration, output_tokens, output_throughput, usable,
                                    latency_p50, latency_p99, ttft_p50, tpot_p50, acceptance_length``
    ``latency``                     ``{mean, p50, p90, p95, p99}`` end to end
    ``ttft``, ``tpot``              ``{mean, p50, p90, p95, p99, source}``; source is ``stream`` or ``server``
    ``itl``                         inter-token latency of streamed chunks, ``{mean, p50, p90, p95, p99}``
    ``goodput``                     requests that keep the limits asked for: ``{limits (s), requests, share, per_second,
                                    share_by_limit}``; null where none was asked for
    ``cached_token_share``          cached prompt tokens ÷ prompt tokens
    ``speedup``, ``speedup_interval``, ``efficiency``   against the target-only cell of the same batch size
Acceptance
    ``acceptance_length``           Σ completion tokens ÷ Σ verification steps, over requests that report steps
    ``acceptance_length_decode``    1 + Σ correct drafts ÷ Σ verification steps
    ``acceptance_length_mean``      the unweighted mean over requests
    ``acceptance_rate``             correct ÷ proposed drafts
    ``spec_verify_ct``, ``correct_drafts``, ``proposed_drafts``   sums
    ``correct_drafts_histogram``    h[i] = verification steps that accepted i drafts
    ``acceptance_by_position``      ``{marginal: [...], conditional: [...]}``, position 1 first
Accuracy
    ``accuracy``, ``accuracy_interval``  share of right prompts, and its 95 % Wilson interval
    ``accuracy_counts``             ``{correct, total, unparsed, truncated, failed, too_long}``
    ``judge``                       a judge's grades, ``{mean, graded, by_turn, by_category}``; null without one
Is it right
    ``lossless``                    ``{identical_share, compared, identical, first_difference: {p10, p50, p90}}``
    ``degenerate_share``, ``truncated_share``  loops and cut answers, as shares of the requests
Counts
    ``output_tokens``, ``prompt_tokens``, ``requests``, ``failed``, ``retried``, ``truncated``, ``truncated_thinking``,
    ``degenerate``, ``clamped``, ``too_long``; ``rounds_repeated``: rounds measured again, since a request failed or
    was retried
``reasons``
    ``{metric: text}``: why a number is null.
"""
