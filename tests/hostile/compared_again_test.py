"""What is compared, looked up, sorted or read again in each visit, for each node or in each round, although it is the same: visits of a body and calls of
a function that are known already, devices of a placement file, nodes on a cycle, attributes of a call, a text of bodies within bodies."""

import random
import unittest

import hostile_test
from promise import LARGEST, PromiseTest
from visits_and_probes_test import some_names

HEAD = '<ir_version:10,opset_import:["":21,"l":1]>\n'
PLACED = '<ir_version:10,opset_import:["":21,"l":1],metadata_props:["tensorlint.device:u":"cuda:0"]>\n'


def filled(text, size=LARGEST):
    """With a function that nothing calls: as many nodes as there is room for allow more visits."""
    head = '<domain:"z",opset_import:["":21]>Fill()=>(){'
    return f"{text}{head}{'=A()' * ((size - len(text) - len(head) - 2) // 4)}}}\n".encode()


def loops(innermost, depth=4, before=""):
    """Loops of 16 iterations in each other. The innermost body differs in each visit: it reads the numbers of all iterations."""
    text = f"=Max({','.join(f'i{level}_' for level in range(1, depth + 1))}){innermost}"
    for level in range(1, depth + 1):
        text = f"v{level}_=Loop(T,C,x)<body=o{level}(i{level}_,c{level}_,s{level}_)=>(c{level}_,i{level}_){{{before if level == 2 else ''}{text}}}>"
    return text


class ComparedAgain(PromiseTest):
    def test_visits_of_a_body_with_few_values(self):
        captured = some_names(9, without={"x", "X", "T", "C", "M", "O", "q"})
        scan = f",,,=Scan<num_scan_inputs=1,body=b(e1,e2,e3,e4,y_)=>(e1,e2,e4,e3){{=Max({','.join(captured)},q)}}>(x,x,O,T,X)"
        number = "p_=Mul(i4_,T) r_=Add(p_,i3_) u_=Mul(r_,T) w_=Add(u_,i2_) q=Min(w_,M) "
        known = ",".join(f"int64 {name}={{{i}}}" for i, name in enumerate(captured))
        text = f"{HEAD}g(int64 x,float[16] X)=>(v4_)<int64 T={{16}},int64 O={{1}},int64 M={{31}},bool C={{1}},{known}>{{{loops(scan * 40, before=number)}}}\n"
        self.run_within_promise(filled(text), "check", "show", name="m.onnxtxt")

    def test_calls_with_lists_that_differ_at_their_ends(self):
        def call(last):
            texts = '"a",' * 150
            return f'=l.F<a=[{texts}"b{last}"]>(X)'

        known = "".join(call(last) for last in range(64))
        text = f'{HEAD}g(int64 x,float X)=>(v4_)<int64 T={{16}},bool C={{1}}>{{{known}{loops(call(99))}}}\n<domain:"l",opset_import:["":21]>F<a>(q)=>(q){{}}\n'
        self.run_within_promise(filled(text), "check", name="m.onnxtxt")

    def test_devices_of_a_placement_file(self):
        rows = [f'{{device="cuda:{10 + i}",values="*"}}' for i in range(62)] + ['{device="cuda:99",values="*"}'] * 1038
        (self.folder / "tensorlint.toml").write_text('placement-file = "rows.toml"\n')
        (self.folder / "rows.toml").write_text(f"place=[{','.join(rows)}]\n")
        model = self.folder / "m.onnxtxt"
        model.write_text(f"{HEAD}g(float x)=>(x){{{''.join(f'{name}=A()' for name in some_names(4400, without={'x'}))}}}\n")
        self.assertLessEqual(sum(file.stat().st_size for file in self.folder.iterdir()), LARGEST)
        for options in ([], ["--placement-file", self.folder / "rows.toml"]):
            self.assert_kept(hostile_test.run(["check", *options, model]), LARGEST)

    def test_nodes_on_a_cycle_without_results(self):
        text = f"""{PLACED}g(float u,float t)=>(float y)<int64 T={{1000}},bool C={{1}}>{{
y=Loop(T,C,t)<body=b(I,K,a)=>(K,a){{p=Loop(I,C,t)<body=q(j,d,L)=>(d,L){{}}>
r=Loop(T,C,t)<body=e(I2,K2,a2)=>(K2,a2){{p2=Loop(I2,C,t)<body=q2(j2,d2,L2)=>(d2,L2){{}}>q=A(q){'=A(q)' * 12_900}}}>}}>}}
"""
        self.run_within_promise(text.encode(), "check", "show", name="m.onnxtxt")

    def test_attributes_of_a_call_after_an_analysis_that_spent_its_work(self):
        names = some_names(4020, without={"l"})
        draw = random.Random(3)
        given, defaults = names[:4000], names[4000:]
        draw.shuffle(given)
        captured = some_names(60, without={"x", "X", "T", "C", "M", "L", "u", "v"})
        visits = "".join(f"z{k}_=Loop(T,C,x)<body=b(k_,d_,e_)=>(d_,e_){{=Max({','.join(captured)},w_,i1_)}}>" for k in range(8))
        calls = f"v=Loop(L,C,u)<body=c(i_,c_,s_)=>(c_,s_){{=l.F<{','.join(f'{name}=1' for name in given)}>(s_)}}>"
        text = f"""{PLACED}g(int64 x,float u,int64[60] X)=>(v)<int64 T={{16}},int64 L={{1000000}},bool C={{1}},int64 M={{3}}>{{{calls}{','.join(captured)}=Split<axis=0,num_outputs=60>(X)
{loops(f'w_=Min(i2_,M){visits}')}}}
<domain:"l",opset_import:["":21]>F<{','.join(f'{name}:int=1' for name in defaults)}>(a)=>(a){{}}
"""
        self.run_within_promise(filled(text), "check --placement runtime", "check", name="m.onnxtxt")

    def test_a_deep_text_in_each_round_of_fixes(self):
        draw = random.Random(1)
        values = some_names(600, without={"X", "Y", "C", "P", "Q", "g", "b", "e", "h", "k0"})
        body = f"b()=>(P){{P=Max({','.join(draw.choice(values) for _ in range(20_300))})}}"
        for _ in range(61):
            body = f"b()=>(Q){{Q=If(C)<then_branch={body},else_branch=e()=>(X){{}}>}}"
        sums = "\n".join(f"k{i + 1}=Add(k{i},h)" for i in range(17))
        declared = "".join(f",float16[2]k{i + 1}" for i in range(16))
        text = f"""{HEAD}g(float[600]X,float[2]k0,float16[2]h)=>(Y,k17)<bool C={{0}}{declared}>{{
{','.join(values)}=Split<axis=0,num_outputs=600>(X)
{sums}
Y=If(C)<then_branch={body},else_branch=e()=>(X){{}}>
}}
"""
        self.run_within_promise(text.encode(), "fix --unsafe --diff", name="m.onnxtxt")

    def test_orders_of_nodes_in_each_probe(self):
        draw = random.Random(1)
        asked = "".join(f"O{i}_=Reshape(I{i}_,R{i}_)" for i in range(25))
        inputs, outputs = ",".join(f"float[a{i}]I{i}_" for i in range(25)), ",".join(f"O{i}_" for i in range(25))
        shapes = ",".join(f"int64[2]R{i}_={{-1,{(8, 16, 32, 4)[i % 4]}}}" for i in range(25))
        late = some_names(52, without={"x", "q"})
        nodes = "".join(f"=A({','.join(draw.sample(late, 40))})" for _ in range(560))
        text = f'{HEAD}g({inputs})=>({outputs})<{shapes}>{{{asked}}}\n<domain:"e",opset_import:["":21]>F(x)=>(){{q=A(a){nodes}{"".join(f"{name}=A(q)" for name in late)}}}\n'
        self.run_within_promise(text.encode(), "contract", name="m.onnxtxt")


if __name__ == "__main__":
    unittest.main()
