# The functions that expressions may call, beside those that the guards wrap
# (functions.go). They mean what gojq's own definitions mean, but their parts
# are guarded like the parts of an expression. A name __raw_f is the machine's
# own f; other names with two underscores are guards.

# An update is the machine's own, which keeps what it has copied and goes on
# writing there. Each path, and each new value, is paid for before it. When an
# update takes values away, the machine clears them up in place, in data that
# is not its own: so that is begun again, on a copy.
def _assign(p; $x): __updating($x) as $s | __raw__assign(__raw_getpath(__payable($s; __raw_path(p))); $x);
def _update(p; f):
  label $done |
  ((__updating as $s | label $none |
    __raw__modify(__raw_getpath(__payable($s; __raw_path(p))); (f | __paid($s)), break $none) | ., break $done),
   (__own | __updating as $s | __raw__modify(__raw_getpath(__payable($s; __raw_path(p))); f | __own)));
def delpaths($p): if $p == [] then . else __disposable($p) | __raw_delpaths($p) | __whole end;
def del(f): delpaths([path(f)]);
def getpath($p): __reachable($p) | __raw_getpath($p);
def map(f): [.[] | f];
def add(f): [f] | add;
def in(xs): . as $x | xs | has($x);
def abs: if . < 0 then -. else . end;
def not: if . then false else true end;
def select(f): if f then . else empty end;
def recurse(f): def r: ., (f | r); r;
def recurse(f; cond): def r: ., (f | select(cond) | r); r;
def recurse: recurse(.[]?);
def map_values(f): .[] |= f;
def to_entries: [keys[] as $k | {key: $k, value: .[$k]}];
def from_entries: [.[] | {(.key // .Key // .name // .Name): (if has("value") then .value else .Value end)}] | add // {};
def with_entries(f): to_entries | map(f) | from_entries;
def while(cond; update): def w: if cond then ., (update | w) else empty end; w;
def until(cond; next): def u: if cond then . else next | u end; u;
def repeat(f): def r: f, r; r;
def range($end): __numbers($end; 0; 0) | __raw__range(0; $end; 1);
def range($start; $end): __numbers($start; $end; 0) | __raw__range($start; $end; 1);
def range($start; $end; $step): __numbers($start; $end; $step) | __raw__range($start; $end; $step);
def min_by(f): map([f]) as $k | __keyed($k) | __raw__min_by($k);
def max_by(f): map([f]) as $k | __keyed($k) | __raw__max_by($k);
def sort_by(f): map([f]) as $k | __keyed($k) | __raw__sort_by($k);
def group_by(f): map([f]) as $k | __keyed($k) | __raw__group_by($k);
def unique_by(f): map([f]) as $k | __keyed($k) | __raw__unique_by($k);
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def finites: select(isfinite);
def normals: select(isnormal);
def strings: select(type == "string");
def nulls: select(. == null);
def values: select(. != null);
def scalars: select(type | . != "array" and . != "object");
def first: .[0];
def first(g): label $out | g | ., break $out;
def last: .[-1];
def last(g): __raw__last(g);
def isempty(g): label $out | (g | false, break $out), true;
def all(g; y): isempty(g | select(y | not));
def all(y): all(.[]; y);
def all: all(.);
def any(g; y): isempty(g | select(y)) | not;
def any(y): any(.[]; y);
def any: any(.);
def limit($n; g):
  if $n > 0 then
    label $out | foreach g as $item ($n; . - 1; $item, if . <= 0 then break $out else empty end)
  elif $n == 0 then empty
  else error("limit doesn't support negative count") end;
def skip($n; g):
  if $n > 0 then foreach g as $item ($n; . - 1; if . < 0 then $item else empty end)
  elif $n == 0 then g
  else error("skip doesn't support negative count") end;
def nth($n): .[$n];
def nth($n; g): if $n >= 0 then first(skip($n; g)) else error("nth doesn't support negative index") end;
def combinations: if length == 0 then [] else .[0][] as $x | [$x] + (.[1:] | combinations) end;
def combinations(n): [limit(n; repeat(.))] | combinations;
def walk(f): def w: if type == "array" then map(w) elif type == "object" then map_values(w) else . end | f; w;
def paths: path(..) | select(. != []);
def paths(f): path(.. | select(f)) | select(. != []);
def pick(f): . as $v | reduce path(f) as $p (null; setpath($p; $v | getpath($p)));
def truncate_stream(f): . as $n | null | f | if .[0] | length > $n then .[0] |= .[$n:] else empty end;
def fromstream(f):
  foreach f as $pv (null;
    if .e then null else . end | $pv as [$p, $v] |
    if $pv | length == 2 then setpath(["v"] + $p; $v) | setpath(["e"]; $p | length == 0)
    else setpath(["e"]; $p | length == 1) end;
    if .e then .v else empty end);
def tostream:
  path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def match($re; $flags): __match($re; $flags; false)[];
def match($re): if $re | type == "array" then match($re[0]; $re[1]) else match($re; null) end;
def test($re; $flags): __match($re; $flags; true);
def test($re): if $re | type == "array" then test($re[0]; $re[1]) else test($re; null) end;
def capture($re; $flags): match($re; $flags) | .captures | _captures;
def capture($re): if $re | type == "array" then capture($re[0]; $re[1]) else capture($re; null) end;
def fromdateiso8601:
  ((strings | capture("^(?<at>[^.]*)[.](?<fraction>[0-9]{1,9})(?<zone>[^0-9].*)$")) // {at: ., fraction: "0", zone: ""})
  | .fraction as $f | if .zone == "" then .at else .at + .zone end
  | strptime("%Y-%m-%dT%H:%M:%S%z") | mktime | if ($f | tonumber) == 0 then . else . + ("0." + $f | tonumber) end;
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdate: fromdateiso8601;
def todate: todateiso8601;
def scan($re; $flags): match($re; $flags + "g") | if .captures == [] then .string else [.captures[].string] end;
def scan($re): scan($re; null);
def splits($re; $flags): __match($re; $flags + "g"; false) as $m | __pieces($m)[];
def splits($re): splits($re; null);
def split($re; $flags): [splits($re; $flags)];
def sub($re; str; $flags):
  __match($re; $flags; false) as $m | __pieces($m) as $p |
  [$m[] | [.captures | _captures | str]] as $r | __weave($p; $r)[];
def sub($re; str): sub($re; str; null);
def gsub($re; str; $flags): sub($re; str; $flags + "g");
def gsub($re; str): sub($re; str; "g");
def INDEX(stream; f): [stream | {(f | tostring): .}] | add // {};
def INDEX(f): INDEX(.[]; f);
def JOIN($idx; f): [.[] | [., $idx[f]]];
def JOIN($idx; stream; f): stream | [., $idx[f]];
def JOIN($idx; stream; f; join_expr): stream | [., $idx[f]] | join_expr;
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
