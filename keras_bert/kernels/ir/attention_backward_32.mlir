module {
  tt.func public @backward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_0 = arith.constant 1.44269502 : f32
    %cst_1 = arith.constant dense<0> : tensor<64xi32>
    %cst_2 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_3 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_4 = arith.constant dense<16> : tensor<64x1xi32>
    %cst_5 = arith.constant dense<569420461> : tensor<64x1xi32>
    %cst_6 = arith.constant dense<15> : tensor<64x1xi32>
    %cst_7 = arith.constant dense<-749064809> : tensor<64x1xi32>
    %cst_8 = arith.constant dense<16> : tensor<1x64xi32>
    %cst_9 = arith.constant dense<569420461> : tensor<1x64xi32>
    %cst_10 = arith.constant dense<15> : tensor<1x64xi32>
    %cst_11 = arith.constant dense<-749064809> : tensor<1x64xi32>
    %cst_12 = arith.constant dense<-749064809> : tensor<64x64xi32>
    %cst_13 = arith.constant dense<15> : tensor<64x64xi32>
    %cst_14 = arith.constant dense<569420461> : tensor<64x64xi32>
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_15 = arith.constant dense<0.000000e+00> : tensor<64x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_16 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst_17 = arith.constant dense<0x7F800000> : tensor<64xf32>
    %c64_i32 = arith.constant 64 : i32
    %c2_i64 = arith.constant 2 : i64
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.extsi %length : i32 to i64
    %7 = arith.muli %3, %6 : i64
    %8 = arith.muli %heads, %c96_i32 : i32
    %9 = arith.extsi %8 : i32 to i64
    %10 = arith.muli %7, %9 : i64
    %11 = tt.addptr %qkv, %10 : !tt.ptr<$float>, i64
    %12 = arith.muli %1, %c32_i32 : i32
    %13 = tt.addptr %11, %12 : !tt.ptr<$float>, i32
    %14 = tt.addptr %d_qkv, %10 : !tt.ptr<$float>, i64
    %15 = tt.addptr %14, %12 : !tt.ptr<$float>, i32
    %16 = arith.extsi %4 : i32 to i64
    %17 = arith.muli %7, %16 : i64
    %18 = arith.extsi %12 : i32 to i64
    %19 = arith.addi %17, %18 : i64
    %20 = tt.addptr %out, %19 : !tt.ptr<$float>, i64
    %21 = tt.addptr %d_out, %19 : !tt.ptr<$float>, i64
    %22 = arith.extsi %heads : i32 to i64
    %23 = arith.muli %3, %22 : i64
    %24 = arith.extsi %1 : i32 to i64
    %25 = arith.addi %23, %24 : i64
    %26 = arith.muli %25, %6 : i64
    %27 = tt.addptr %log_sums, %26 : !tt.ptr<f32>, i64
    %28 = arith.muli %3, %c2_i64 : i64
    %29 = arith.muli %28, %6 : i64
    %30 = tt.addptr %groups, %29 : !tt.ptr<i32>, i64
    %31 = arith.muli %2, %heads : i32
    %32 = arith.addi %31, %1 : i32
    %33 = arith.muli %32, %length : i32
    %34 = tt.load %seed : !tt.ptr<i32>
    %35 = arith.shrui %34, %c16_i32 : i32
    %36 = arith.xori %34, %35 : i32
    %37 = arith.muli %36, %c569420461_i32 : i32
    %38 = arith.shrui %37, %c15_i32 : i32
    %39 = arith.xori %37, %38 : i32
    %40 = arith.muli %39, %c-749064809_i32 : i32
    %41 = arith.shrui %40, %c15_i32 : i32
    %42 = arith.xori %40, %41 : i32
    %43 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %44 = tt.load %43 : !tt.ptr<i32>
    %45 = arith.addi %42, %44 : i32
    %46 = arith.shrui %45, %c16_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = arith.muli %47, %c569420461_i32 : i32
    %49 = arith.shrui %48, %c15_i32 : i32
    %50 = arith.xori %48, %49 : i32
    %51 = arith.muli %50, %c-749064809_i32 : i32
    %52 = arith.shrui %51, %c15_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.muli %0, %c64_i32 : i32
    %55 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %56 = tt.splat %54 : i32 -> tensor<64xi32>
    %57 = arith.addi %56, %55 : tensor<64xi32>
    %58 = tt.expand_dims %57 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %59 = tt.splat %length : i32 -> tensor<64x1xi32>
    %60 = arith.cmpi slt, %58, %59 : tensor<64x1xi32>
    %61 = tt.splat %8 : i32 -> tensor<64x1xi32>
    %62 = arith.muli %58, %61 : tensor<64x1xi32>
    %63 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %64 = tt.broadcast %62 : tensor<64x1xi32> -> tensor<64x32xi32>
    %65 = tt.broadcast %63 : tensor<1x32xi32> -> tensor<64x32xi32>
    %66 = arith.addi %64, %65 : tensor<64x32xi32>
    %67 = tt.addptr %13, %4 : !tt.ptr<$float>, i32
    %68 = tt.splat %67 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %69 = tt.addptr %68, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %70 = tt.broadcast %60 : tensor<64x1xi1> -> tensor<64x32xi1>
    %71 = tt.load %69, %70, %cst_15 : tensor<64x32x!tt.ptr<$float>>
    %72 = arith.muli %heads, %c64_i32 : i32
    %73 = tt.addptr %13, %72 : !tt.ptr<$float>, i32
    %74 = tt.splat %73 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %75 = tt.addptr %74, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %76 = tt.load %75, %70, %cst_15 : tensor<64x32x!tt.ptr<$float>>
    %77:2 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_16, %arg14 = %cst_16) -> (tensor<64x32xf32>, tensor<64x32xf32>)  : i32 {
      %112 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %113 = arith.addi %112, %55 : tensor<64xi32>
      %114 = tt.expand_dims %113 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %115 = arith.cmpi slt, %114, %59 : tensor<64x1xi32>
      %116 = arith.muli %114, %61 : tensor<64x1xi32>
      %117 = tt.broadcast %116 : tensor<64x1xi32> -> tensor<64x32xi32>
      %118 = arith.addi %117, %65 : tensor<64x32xi32>
      %119 = tt.splat %4 : i32 -> tensor<64x1xi32>
      %120 = arith.muli %114, %119 : tensor<64x1xi32>
      %121 = tt.broadcast %120 : tensor<64x1xi32> -> tensor<64x32xi32>
      %122 = arith.addi %121, %65 : tensor<64x32xi32>
      %123 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %124 = tt.addptr %123, %118 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %125 = tt.broadcast %115 : tensor<64x1xi1> -> tensor<64x32xi1>
      %126 = tt.load %124, %125, %cst_15 : tensor<64x32x!tt.ptr<$float>>
      %127 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %128 = tt.addptr %127, %122 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %129 = tt.load %128, %125, %cst_15 : tensor<64x32x!tt.ptr<$float>>
      %130 = tt.splat %21 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %131 = tt.addptr %130, %122 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %132 = tt.load %131, %125, %cst_15 : tensor<64x32x!tt.ptr<$float>>
      %133 = tt.splat %length : i32 -> tensor<64xi32>
      %134 = arith.cmpi slt, %113, %133 : tensor<64xi32>
      %135 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %136 = tt.addptr %135, %113 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %137 = tt.load %136, %134, %cst_17 : tensor<64x!tt.ptr<f32>>
      %138 = arith.extf %129 : tensor<64x32x$float> to tensor<64x32xf32>
      %139 = arith.extf %132 : tensor<64x32x$float> to tensor<64x32xf32>
      %140 = arith.mulf %138, %139 : tensor<64x32xf32>
      %141 = "tt.reduce"(%140) <{axis = 1 : i32}> ({
      ^bb0(%arg15: f32, %arg16: f32):
        %233 = arith.addf %arg15, %arg16 : f32
        tt.reduce.return %233 : f32
      }) : (tensor<64x32xf32>) -> tensor<64xf32>
      %142 = tt.splat %33 : i32 -> tensor<64xi32>
      %143 = arith.addi %142, %113 : tensor<64xi32>
      %144 = tt.trans %126 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %145 = tt.dot %71, %144, %cst, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %146 = arith.mulf %scale, %cst_0 : f32
      %147 = tt.splat %146 : f32 -> tensor<64x64xf32>
      %148 = arith.mulf %145, %147 : tensor<64x64xf32>
      %149 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %150 = tt.addptr %149, %113 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %151 = tt.load %150, %134, %cst_1 : tensor<64x!tt.ptr<i32>>
      %152 = arith.cmpi slt, %57, %133 : tensor<64xi32>
      %153 = tt.addptr %30, %length : !tt.ptr<i32>, i32
      %154 = tt.splat %153 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %155 = tt.addptr %154, %57 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %156 = tt.load %155, %152, %cst_2 : tensor<64x!tt.ptr<i32>>
      %157 = tt.expand_dims %151 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %158 = tt.expand_dims %156 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %159 = tt.broadcast %157 : tensor<1x64xi32> -> tensor<64x64xi32>
      %160 = tt.broadcast %158 : tensor<64x1xi32> -> tensor<64x64xi32>
      %161 = arith.cmpi eq, %159, %160 : tensor<64x64xi32>
      %162 = arith.select %161, %cst, %cst_3 : tensor<64x64xi1>, tensor<64x64xf32>
      %163 = arith.addf %148, %162 : tensor<64x64xf32>
      %164 = tt.expand_dims %137 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %165 = tt.broadcast %164 : tensor<1x64xf32> -> tensor<64x64xf32>
      %166 = arith.subf %163, %165 : tensor<64x64xf32>
      %167 = math.exp2 %166 : tensor<64x64xf32>
      %168 = tt.trans %132 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %169 = tt.dot %76, %168, %cst, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %170 = tt.expand_dims %143 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %171 = arith.addi %53, %c1_i32 : i32
      %172 = arith.shrui %171, %c16_i32 : i32
      %173 = arith.xori %171, %172 : i32
      %174 = arith.muli %173, %c569420461_i32 : i32
      %175 = arith.shrui %174, %c15_i32 : i32
      %176 = arith.xori %174, %175 : i32
      %177 = arith.muli %176, %c-749064809_i32 : i32
      %178 = arith.shrui %177, %c15_i32 : i32
      %179 = arith.xori %177, %178 : i32
      %180 = tt.splat %179 : i32 -> tensor<1x64xi32>
      %181 = arith.addi %170, %180 : tensor<1x64xi32>
      %182 = arith.shrui %181, %cst_8 : tensor<1x64xi32>
      %183 = arith.xori %181, %182 : tensor<1x64xi32>
      %184 = arith.muli %183, %cst_9 : tensor<1x64xi32>
      %185 = arith.shrui %184, %cst_10 : tensor<1x64xi32>
      %186 = arith.xori %184, %185 : tensor<1x64xi32>
      %187 = arith.muli %186, %cst_11 : tensor<1x64xi32>
      %188 = arith.shrui %187, %cst_10 : tensor<1x64xi32>
      %189 = arith.xori %187, %188 : tensor<1x64xi32>
      %190 = arith.addi %53, %c2_i32 : i32
      %191 = arith.shrui %190, %c16_i32 : i32
      %192 = arith.xori %190, %191 : i32
      %193 = arith.muli %192, %c569420461_i32 : i32
      %194 = arith.shrui %193, %c15_i32 : i32
      %195 = arith.xori %193, %194 : i32
      %196 = arith.muli %195, %c-749064809_i32 : i32
      %197 = arith.shrui %196, %c15_i32 : i32
      %198 = arith.xori %196, %197 : i32
      %199 = tt.splat %198 : i32 -> tensor<64x1xi32>
      %200 = arith.addi %58, %199 : tensor<64x1xi32>
      %201 = arith.shrui %200, %cst_4 : tensor<64x1xi32>
      %202 = arith.xori %200, %201 : tensor<64x1xi32>
      %203 = arith.muli %202, %cst_5 : tensor<64x1xi32>
      %204 = arith.shrui %203, %cst_6 : tensor<64x1xi32>
      %205 = arith.xori %203, %204 : tensor<64x1xi32>
      %206 = arith.muli %205, %cst_7 : tensor<64x1xi32>
      %207 = arith.shrui %206, %cst_6 : tensor<64x1xi32>
      %208 = arith.xori %206, %207 : tensor<64x1xi32>
      %209 = tt.broadcast %189 : tensor<1x64xi32> -> tensor<64x64xi32>
      %210 = tt.broadcast %208 : tensor<64x1xi32> -> tensor<64x64xi32>
      %211 = arith.xori %209, %210 : tensor<64x64xi32>
      %212 = arith.muli %211, %cst_14 : tensor<64x64xi32>
      %213 = arith.shrui %212, %cst_13 : tensor<64x64xi32>
      %214 = arith.xori %212, %213 : tensor<64x64xi32>
      %215 = arith.muli %214, %cst_12 : tensor<64x64xi32>
      %216 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %217 = arith.cmpi uge, %215, %216 : tensor<64x64xi32>
      %218 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %219 = arith.mulf %167, %218 : tensor<64x64xf32>
      %220 = arith.select %217, %219, %cst : tensor<64x64xi1>, tensor<64x64xf32>
      %221 = arith.mulf %169, %218 : tensor<64x64xf32>
      %222 = arith.select %217, %221, %cst : tensor<64x64xi1>, tensor<64x64xf32>
      %223 = tt.expand_dims %141 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %224 = tt.broadcast %223 : tensor<1x64xf32> -> tensor<64x64xf32>
      %225 = arith.subf %222, %224 : tensor<64x64xf32>
      %226 = arith.mulf %167, %225 : tensor<64x64xf32>
      %227 = tt.splat %scale : f32 -> tensor<64x64xf32>
      %228 = arith.mulf %226, %227 : tensor<64x64xf32>
      %229 = arith.truncf %220 : tensor<64x64xf32> to tensor<64x64x$float>
      %230 = arith.truncf %228 : tensor<64x64xf32> to tensor<64x64x$float>
      %231 = tt.dot %229, %132, %arg14, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      %232 = tt.dot %230, %126, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %232, %231 : tensor<64x32xf32>, tensor<64x32xf32>
    }
    %78 = tt.addptr %15, %4 : !tt.ptr<$float>, i32
    %79 = tt.splat %78 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %80 = tt.addptr %79, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %81 = arith.truncf %77#0 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %80, %81, %70 : tensor<64x32x!tt.ptr<$float>>
    %82 = tt.addptr %15, %72 : !tt.ptr<$float>, i32
    %83 = tt.splat %82 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %84 = tt.addptr %83, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %85 = arith.truncf %77#1 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %84, %85, %70 : tensor<64x32x!tt.ptr<$float>>
    %86 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %87 = arith.muli %58, %86 : tensor<64x1xi32>
    %88 = tt.broadcast %87 : tensor<64x1xi32> -> tensor<64x32xi32>
    %89 = arith.addi %88, %65 : tensor<64x32xi32>
    %90 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %91 = tt.addptr %90, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %92 = tt.load %91, %70, %cst_15 : tensor<64x32x!tt.ptr<$float>>
    %93 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %94 = tt.addptr %93, %89 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %95 = tt.load %94, %70, %cst_15 : tensor<64x32x!tt.ptr<$float>>
    %96 = tt.splat %21 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %97 = tt.addptr %96, %89 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %98 = tt.load %97, %70, %cst_15 : tensor<64x32x!tt.ptr<$float>>
    %99 = tt.splat %length : i32 -> tensor<64xi32>
    %100 = arith.cmpi slt, %57, %99 : tensor<64xi32>
    %101 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %102 = tt.addptr %101, %57 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %103 = tt.load %102, %100, %cst_17 : tensor<64x!tt.ptr<f32>>
    %104 = arith.extf %95 : tensor<64x32x$float> to tensor<64x32xf32>
    %105 = arith.extf %98 : tensor<64x32x$float> to tensor<64x32xf32>
    %106 = arith.mulf %104, %105 : tensor<64x32xf32>
    %107 = "tt.reduce"(%106) <{axis = 1 : i32}> ({
    ^bb0(%arg12: f32, %arg13: f32):
      %112 = arith.addf %arg12, %arg13 : f32
      tt.reduce.return %112 : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    %108 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_16) -> (tensor<64x32xf32>)  : i32 {
      %112 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %113 = arith.addi %112, %55 : tensor<64xi32>
      %114 = tt.expand_dims %113 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %115 = arith.cmpi slt, %114, %59 : tensor<64x1xi32>
      %116 = arith.muli %114, %61 : tensor<64x1xi32>
      %117 = tt.broadcast %116 : tensor<64x1xi32> -> tensor<64x32xi32>
      %118 = arith.addi %117, %65 : tensor<64x32xi32>
      %119 = tt.addptr %68, %118 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %120 = tt.broadcast %115 : tensor<64x1xi1> -> tensor<64x32xi1>
      %121 = tt.load %119, %120, %cst_15 : tensor<64x32x!tt.ptr<$float>>
      %122 = tt.addptr %74, %118 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %123 = tt.load %122, %120, %cst_15 : tensor<64x32x!tt.ptr<$float>>
      %124 = tt.splat %33 : i32 -> tensor<64xi32>
      %125 = arith.addi %124, %57 : tensor<64xi32>
      %126 = tt.trans %92 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %127 = tt.dot %121, %126, %cst, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %128 = arith.mulf %scale, %cst_0 : f32
      %129 = tt.splat %128 : f32 -> tensor<64x64xf32>
      %130 = arith.mulf %127, %129 : tensor<64x64xf32>
      %131 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %132 = tt.addptr %131, %57 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %133 = tt.load %132, %100, %cst_1 : tensor<64x!tt.ptr<i32>>
      %134 = arith.cmpi slt, %113, %99 : tensor<64xi32>
      %135 = tt.addptr %30, %length : !tt.ptr<i32>, i32
      %136 = tt.splat %135 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %137 = tt.addptr %136, %113 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %138 = tt.load %137, %134, %cst_2 : tensor<64x!tt.ptr<i32>>
      %139 = tt.expand_dims %133 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %140 = tt.expand_dims %138 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %141 = tt.broadcast %139 : tensor<1x64xi32> -> tensor<64x64xi32>
      %142 = tt.broadcast %140 : tensor<64x1xi32> -> tensor<64x64xi32>
      %143 = arith.cmpi eq, %141, %142 : tensor<64x64xi32>
      %144 = arith.select %143, %cst, %cst_3 : tensor<64x64xi1>, tensor<64x64xf32>
      %145 = arith.addf %130, %144 : tensor<64x64xf32>
      %146 = tt.expand_dims %103 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %147 = tt.broadcast %146 : tensor<1x64xf32> -> tensor<64x64xf32>
      %148 = arith.subf %145, %147 : tensor<64x64xf32>
      %149 = math.exp2 %148 : tensor<64x64xf32>
      %150 = tt.trans %98 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %151 = tt.dot %123, %150, %cst, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %152 = tt.expand_dims %125 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %153 = arith.addi %53, %c1_i32 : i32
      %154 = arith.shrui %153, %c16_i32 : i32
      %155 = arith.xori %153, %154 : i32
      %156 = arith.muli %155, %c569420461_i32 : i32
      %157 = arith.shrui %156, %c15_i32 : i32
      %158 = arith.xori %156, %157 : i32
      %159 = arith.muli %158, %c-749064809_i32 : i32
      %160 = arith.shrui %159, %c15_i32 : i32
      %161 = arith.xori %159, %160 : i32
      %162 = tt.splat %161 : i32 -> tensor<1x64xi32>
      %163 = arith.addi %152, %162 : tensor<1x64xi32>
      %164 = arith.shrui %163, %cst_8 : tensor<1x64xi32>
      %165 = arith.xori %163, %164 : tensor<1x64xi32>
      %166 = arith.muli %165, %cst_9 : tensor<1x64xi32>
      %167 = arith.shrui %166, %cst_10 : tensor<1x64xi32>
      %168 = arith.xori %166, %167 : tensor<1x64xi32>
      %169 = arith.muli %168, %cst_11 : tensor<1x64xi32>
      %170 = arith.shrui %169, %cst_10 : tensor<1x64xi32>
      %171 = arith.xori %169, %170 : tensor<1x64xi32>
      %172 = arith.addi %53, %c2_i32 : i32
      %173 = arith.shrui %172, %c16_i32 : i32
      %174 = arith.xori %172, %173 : i32
      %175 = arith.muli %174, %c569420461_i32 : i32
      %176 = arith.shrui %175, %c15_i32 : i32
      %177 = arith.xori %175, %176 : i32
      %178 = arith.muli %177, %c-749064809_i32 : i32
      %179 = arith.shrui %178, %c15_i32 : i32
      %180 = arith.xori %178, %179 : i32
      %181 = tt.splat %180 : i32 -> tensor<64x1xi32>
      %182 = arith.addi %114, %181 : tensor<64x1xi32>
      %183 = arith.shrui %182, %cst_4 : tensor<64x1xi32>
      %184 = arith.xori %182, %183 : tensor<64x1xi32>
      %185 = arith.muli %184, %cst_5 : tensor<64x1xi32>
      %186 = arith.shrui %185, %cst_6 : tensor<64x1xi32>
      %187 = arith.xori %185, %186 : tensor<64x1xi32>
      %188 = arith.muli %187, %cst_7 : tensor<64x1xi32>
      %189 = arith.shrui %188, %cst_6 : tensor<64x1xi32>
      %190 = arith.xori %188, %189 : tensor<64x1xi32>
      %191 = tt.broadcast %171 : tensor<1x64xi32> -> tensor<64x64xi32>
      %192 = tt.broadcast %190 : tensor<64x1xi32> -> tensor<64x64xi32>
      %193 = arith.xori %191, %192 : tensor<64x64xi32>
      %194 = arith.muli %193, %cst_14 : tensor<64x64xi32>
      %195 = arith.shrui %194, %cst_13 : tensor<64x64xi32>
      %196 = arith.xori %194, %195 : tensor<64x64xi32>
      %197 = arith.muli %196, %cst_12 : tensor<64x64xi32>
      %198 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %199 = arith.cmpi uge, %197, %198 : tensor<64x64xi32>
      %200 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %201 = arith.mulf %151, %200 : tensor<64x64xf32>
      %202 = arith.select %199, %201, %cst : tensor<64x64xi1>, tensor<64x64xf32>
      %203 = tt.expand_dims %107 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %204 = tt.broadcast %203 : tensor<1x64xf32> -> tensor<64x64xf32>
      %205 = arith.subf %202, %204 : tensor<64x64xf32>
      %206 = arith.mulf %149, %205 : tensor<64x64xf32>
      %207 = tt.splat %scale : f32 -> tensor<64x64xf32>
      %208 = arith.mulf %206, %207 : tensor<64x64xf32>
      %209 = arith.truncf %208 : tensor<64x64xf32> to tensor<64x64x$float>
      %210 = tt.trans %209 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %211 = tt.dot %210, %121, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %211 : tensor<64x32xf32>
    }
    %109 = tt.splat %15 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
    %110 = tt.addptr %109, %66 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %111 = arith.truncf %108 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %110, %111, %70 : tensor<64x32x!tt.ptr<$float>>
    tt.return
  }
}
